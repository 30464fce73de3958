import { cpus, release } from 'node:os'
import type { Figures, Name } from './measure.ts'
import type { Workload } from './workloads.ts'

export type Row = { workload: Workload; figures: ReadonlyMap<Name, Figures> }

const columns: readonly [title: string, cell: (row: Row) => string][] = [
  ['workload', ({ workload }) => workload.name],
  ['nginx', ({ figures }) => us(figures.get('nginx'))],
  ['bare pipe', ({ figures }) => us(figures.get('bare'))],
  ['gateway (main)', ({ figures }) => withMain(figures.get('gateway'))],
  ['÷ bare', ({ figures }) => ratio(figures, 'gateway', 'bare')],
  ['÷ nginx', ({ figures }) => ratio(figures, 'gateway', 'nginx')],
  ['before (main)', ({ figures }) => withMain(figures.get('before'))],
  ['÷ before', ({ figures }) => ratio(figures, 'gateway', 'before')],
  ['a second', ({ figures }) => ofBoth(figures, (one) => one.perSecond.toFixed(0))],
  ['first byte', ({ figures }) => ofBoth(figures, (one) => one.firstMs.toFixed(1))],
  ['p50', ({ figures }) => ofBoth(figures, (one) => one.p50Ms?.toFixed(2))],
  ['p99', ({ figures }) => ofBoth(figures, (one) => one.p99Ms?.toFixed(1))],
  ['RSS', ({ figures }) => ofBoth(figures, (one) => one.rssMb.toFixed(0))],
]

/** Formats rows as a table; columns without any figure are left out. */
export function formatTable(rows: readonly Row[]): string {
  const shown = columns.filter(([, cell]) => rows.some((row) => cell(row) !== '–'))
  const lines = [shown.map(([title]) => title), ...rows.map((row) => shown.map(([, cell]) => cell(row)))]
  const widths = shown.map((_, i) => Math.max(...lines.map((cells) => cells[i]!.length)))
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(' | ')} |`
  return [
    line(lines[0]!),
    `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`,
    ...lines.slice(1).map(line),
  ].join('\n')
}

export function formatPage(rows: readonly Row[], rounds: number, remarks: readonly string[]): string {
  const [core] = cpus()
  return `# What the gateway costs

Written by \`npm run bench\`: ${cpus().length} cores (${core?.model.trim()}), Linux ${release()}, Node ${process.versions.node}.
The first columns have µs of CPU (user and system, all threads) per request, and of streams per event. They are medians of ${rounds}
rounds, in which the warm servers took turns. The other columns have figures of the bare pipe and of the gateway: requests a
second and ms to the first byte at saturation, p50 and p99 in ms at 30 % of saturation, and MB of RSS after the row. Figures
drift with the machine, but ratios do not. [README.md](../README.md) explains the method.

${formatTable(rows)}

![CPU of the gateway, as a multiple of the bare pipe's](ratios.svg)

${remarks.map((remark) => `- ${remark}`).join('\n')}
`
}

const drawn = { left: 330, wide: 560, high: 22 }

/** Draws bars of the gateway's cost, as multiples of the bare pipe's. */
export function drawRatios(rows: readonly Row[]): string {
  const bars = rows.map(({ workload, figures }) => ({
    name: workload.name,
    times: figures.get('gateway')!.usAll / figures.get('bare')!.usAll,
  }))
  const { left, wide, high } = drawn
  const scale = wide / Math.max(2, ...bars.map(({ times }) => times))
  const texts = bars.map(({ name, times }, i) => {
    const y = (i + 1) * high
    const width = times * scale
    return `<text x="${left - 8}" y="${y + 11}" text-anchor="end">${name}</text>
<rect x="${left}" y="${y}" width="${width.toFixed(1)}" height="${high - 7}" fill="#4477aa"/>
<text x="${(left + width + 6).toFixed(1)}" y="${y + 11}">${times.toFixed(2)} ×</text>`
  })
  const height = (bars.length + 2) * high
  const one = left + scale
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left + wide + 70}" height="${height}" font-family="sans-serif" font-size="12">
<title>What each row costs the gateway, as a multiple of what it costs a bare pipe</title>
<rect width="100%" height="100%" fill="white"/>
${texts.join('\n')}
<line x1="${one}" y1="${high / 2}" x2="${one}" y2="${height - high / 2}" stroke="#bb5566"/>
<text x="${one + 4}" y="${high - 8}" fill="#bb5566">bare pipe</text>
</svg>
`
}

function us(figures: Figures | undefined): string {
  return figures === undefined ? '–' : figures.usAll.toFixed(1)
}

function withMain(figures: Figures | undefined): string {
  return figures === undefined ? '–' : `${figures.usAll.toFixed(1)} (${figures.usMain.toFixed(1)})`
}

function ratio(figures: ReadonlyMap<Name, Figures>, name: Name, base: Name): string {
  const [one, other] = [figures.get(name), figures.get(base)]
  return one && other ? `${(one.usAll / other.usAll).toFixed(2)} ×` : '–'
}

function ofBoth(figures: ReadonlyMap<Name, Figures>, read: (figures: Figures) => string | undefined): string {
  const told = (['bare', 'gateway'] as const).map((name) => read(figures.get(name)!))
  return told.every((one) => one === undefined) ? '–' : told.map((one) => one ?? '–').join(' / ')
}
