import type { Attack } from './attacker.ts'
import type { Ran } from './gateway.ts'
import type { Window } from './payer.ts'

/** A shorter time without an attack counts as this, in ms, because ratios of short times depend on chance. */
const floorMs = 50
const ratioMax = 2

/** One attack, with the results of the payers before it (`quiet`) and during it (`beside`). */
export type Row = {
  attack: Pick<Attack, 'name' | 'finding' | 'expectedOpen' | 'isOverload'>
  requests: number
  quiet: Window
  beside: Window
  /** The peak of resident memory during the attack, in MB. */
  rssPeak: number
  /** The running time of the server's main thread without the attack and during it. */
  quietRan: Ran
  besideRan: Ran
}

export type Bounds = { rssMax: number }

/** The figures of a row that exceed the bounds, in words. */
export function judge(row: Row, { rssMax }: Bounds): string[] {
  const found: string[] = []
  const base = Math.max(floorMs, ownMs(row.quiet, row.quietRan))
  const own = ownMs(row.beside, row.besideRan)
  if (!row.attack.isOverload && !(own <= ratioMax * base))
    found.push(`p99 of payers ${ms(own)} ms, more than ${ratioMax} × ${ms(base)} ms`)
  const { faults } = row.beside
  if (faults.length) found.push(`${faults.length} payers failed: ${summary(faults)}`)
  if (row.quiet.faults.length) found.push(`${row.quiet.faults.length} failed before it: ${summary(row.quiet.faults)}`)
  if (row.rssPeak > rssMax) found.push(`RSS ${ms(row.rssPeak)} MB, more than ${rssMax} MB`)
  return found
}

/**
 * The 99th percentile without the influence of the machine: few cores, attackers on them, and other work. The time of a
 * request without a gateway is subtracted. The rest is divided by the slowdown of the server, which waited for a
 * processor. On a machine of its own the result is close to the plain figure.
 */
function ownMs({ times, directTimes }: Window, ran: Ran): number {
  return Math.max(0, percentile(times, 99) - percentile(directTimes, 99)) / slowdown(ran)
}

/** How many times longer the server took for its work because it had to wait for a processor. */
function slowdown({ seconds, waitedSeconds }: Ran): number {
  return seconds > 0 ? (seconds + waitedSeconds) / seconds : 1
}

export function formatTable(rows: readonly Row[], bounds: Bounds): string {
  const lines = rows.map((row) => {
    const { quiet, beside, attack } = row
    const p = (times: number[]) => `${ms(percentile(times, 50))}/${ms(percentile(times, 99))}`
    const own = ownMs(beside, row.besideRan)
    const slow = [row.quietRan, row.besideRan].map((ran) => slowdown(ran).toFixed(1)).join('/')
    const verdict = judge(row, bounds).length === 0 ? 'ok' : attack.expectedOpen ? 'open' : 'FAIL'
    return [
      attack.name,
      attack.finding,
      `${row.requests}`,
      `${quiet.times.length}/${beside.times.length}`,
      p(quiet.times),
      p(beside.times),
      (percentile(beside.times, 99) / percentile(quiet.times, 99)).toFixed(1),
      p(beside.directTimes),
      slow,
      `${ms(ownMs(quiet, row.quietRan))}/${ms(own)}`,
      (own / Math.max(floorMs, ownMs(quiet, row.quietRan))).toFixed(1),
      `${beside.faults.length}`,
      ms(row.rssPeak),
      row.besideRan.seconds.toFixed(1),
      verdict,
    ]
  })
  const table = [
    [
      'attack',
      'finding',
      'requests',
      'paid',
      'p50/p99 quiet',
      'beside',
      'ratio',
      'direct',
      'slowed',
      'own p99',
      'ratio',
      'refused',
      'RSS',
      'CPU s',
      '',
    ],
    ...lines,
  ]
  const widths = table[0]!.map((_, column) => Math.max(...table.map((line) => line[column]!.length)))
  return table
    .map((line) => line.map((cell, i) => (i < 2 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join('  '))
    .join('\n')
}

/** The percentile by the nearest rank; NaN for no times, which is within no bound. */
export function percentile(times: readonly number[], percent: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}

/** Lists each kind of fault once, the most frequent first. */
export function summary(faults: readonly string[]): string {
  const kinds = Map.groupBy(faults, (fault) => {
    const words = fault.replace(/^.*?: /, '').replaceAll(/\s+/g, ' ')
    return words.replaceAll(/nonce-\S+|req_\w+/g, '…').slice(0, 70)
  })
  const counted = [...kinds].sort(([, a], [, b]) => b.length - a.length)
  return counted
    .slice(0, 5)
    .map(([kind, all]) => `${all.length} × ${kind}`)
    .join('; ')
}

function ms(value: number): string {
  return value >= 10 ? value.toFixed(0) : value.toFixed(1)
}
