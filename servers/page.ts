import { wires } from './gateway.ts'
import type { Cell, Results, Verdict } from './results.ts'

const signs: Record<Verdict, string> = { pass: 'yes', none: '–', own: 'own', ours: '**no**' }

export function tableOf({ cells }: Results): string {
  const names = [...new Set(cells.map(({ feature }) => feature))]
  const columns = wires.flatMap((modelWire) => (['direct', ...wires] as const).map((clientWire) => ({ clientWire, modelWire })))
  const sign = (feature: string, of: { clientWire: string; modelWire: string }) => {
    const cell = cells.find(
      (one) => one.feature === feature && one.clientWire === of.clientWire && one.modelWire === of.modelWire,
    )
    if (cell === undefined) return '–'
    return cell.clientWire === 'direct' && cell.verdict === 'own' ? 'no' : signs[cell.verdict]
  }
  const head = columns.map(({ clientWire, modelWire }) => `${clientWire}→${modelWire}`)
  return [
    `| | ${head.join(' | ')} |`,
    `|---|${columns.map(() => '---').join('|')}|`,
    ...names.map((name) => `| ${name} | ${columns.map((column) => sign(name, column)).join(' | ')} |`),
  ].join('\n')
}

export function writePage(results: Results): string {
  return tableOf(results)
}
export type { Cell }
