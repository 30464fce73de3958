import type { Figures } from '../measure.ts'
import type { Workload } from '../workloads.ts'
import { refused } from './refused.ts'

/** The results of a run, as they are kept. */
export type Run = {
  /** The time, the machine and the duration of the run. */
  about: string
  rows: Pick<Workload, 'name' | 'unit' | 'wire' | 'modelWire'>[]
  servers: ServerTold[]
  remarks: string[]
}

export type ServerTold = {
  name: string
  /** The version, its package, and the registry. */
  what: string
  /** The work of the server besides passing on requests; a pipe has none. */
  has: string
  isPipe: boolean
  startedMs?: number
  idleMb?: number
  /** The figures by the names of the rows; a text says why the peer has no figures. */
  cells: Record<string, Figures | string>
}

const begin = '<!-- Between here and the end mark: npm run bench:peers -- --write -->'
const end = '<!-- end -->'

/** Replaces the generated part of the page. @throws Error if its marks are missing */
export function putIntoPage(page: string, part: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error('the page has no place for the tables')
  return `${page.slice(0, from + begin.length)}\n\n${part}\n\n${page.slice(to)}`
}

/** Formats the tables, the reasons for empty cells, and the gateways that could not be had. */
export function formatRun(run: Run): string {
  const { about, servers, remarks } = run
  const measured = servers.filter(({ cells }) => Object.values(cells).some(isFigures))
  const absent = servers.filter((server) => !measured.includes(server))
  return [
    about,
    costs(run, measured),
    'Requests a second are measured at saturation of one core, and the times p50 and p99 at 30 % of that load. RSS is the memory of all processes of a server. The time to start ends when the server listens:',
    times(run, measured),
    '### What each server does for a request',
    bullets(servers.filter(({ isPipe }) => !isPipe).map(({ name, what, has }) => `**${name}** ${what}: ${has}.`)),
    '### What was not measured',
    bullets([
      ...absent.map(({ name, what, cells }) => `**${name}** ${what}: ${clean(Object.values(cells)[0])}`),
      ...measured.flatMap(reasons),
      ...refused.map(({ name, why }) => `**${name}**: ${why}`),
    ]),
    ...(remarks.length > 0
      ? [
          '### Notes of the run',
          'Each note begins with the [name of a column](#how-it-is-measured).',
          bullets(remarks.map(clean)),
        ]
      : []),
  ].join('\n\n')
}

/** The table of costs. The lowest cost of a gateway is bold; pipes do not count, since they only pass on. */
function costs({ rows }: Run, servers: readonly ServerTold[]): string {
  const least = rows.map(({ name }) => {
    const all = servers.filter(({ isPipe }) => !isPipe).map(({ cells }) => usOf(cells[name]))
    return Math.min(...all)
  })
  return table(
    ['', ...rows.map(({ name, unit }) => `${name}: µs of CPU for ${unit === 'event' ? 'an event' : 'a request'}`)],
    servers.map(({ name, isPipe, cells }) => [
      name,
      ...rows.map((row, i) => {
        const cell = cells[row.name]
        if (!isFigures(cell)) return '–'
        const text = formatUs(cell.usAll)
        if (isPipe) return row.wire === row.modelWire ? text : `(${text})`
        return cell.usAll === least[i] ? `**${text}**` : text
      }),
    ]),
  )
}

function times({ rows }: Run, servers: readonly ServerTold[]): string {
  const [json, one] = [rows[0]?.name ?? '', rows[1]?.name ?? '']
  const stream = rows.find(({ unit }) => unit === 'event')?.name ?? ''
  return table(
    [
      '',
      `${json}: requests a second`,
      'p50 / p99 ms at 30 %',
      `${one}: p50 ms`,
      'RSS MB when idle',
      'RSS MB after that row',
      'RSS MB after streams',
      'ms to start',
      'requests before measuring',
    ],
    servers.map(({ name, idleMb, startedMs, cells }) => {
      const [busy, alone, streamed] = [json, one, stream].map((row) => figuresOf(cells[row]))
      return [
        name,
        whole(busy?.perSecond),
        busy?.p50Ms === undefined ? '–' : `${busy.p50Ms.toFixed(2)} / ${busy.p99Ms?.toFixed(1) ?? '–'}`,
        alone?.tookMs.toFixed(2) ?? '–',
        whole(idleMb),
        whole(busy?.rssMb),
        whole(streamed?.rssMb),
        whole(startedMs),
        whole(busy?.heated),
      ]
    }),
  )
}

/** Lists each reason once, with all rows that it applies to. */
function reasons({ name, cells }: ServerTold): string[] {
  const rowsOf = new Map<string, string[]>()
  for (const [row, cell] of Object.entries(cells))
    if (typeof cell === 'string') rowsOf.set(clean(cell), [...(rowsOf.get(clean(cell)) ?? []), row])
  return [...rowsOf].map(([why, rows]) => `**${name}**, ${rows.join('; ')}: ${why}`)
}

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function bullets(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join('\n')
}

/** Makes a text of others safe for our page: on one line, and without markup. */
function clean(text: Figures | string | undefined): string {
  return String(text)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[<>|`*[\]]/g, (mark) => `\\${mark}`)
}

function isFigures(cell: Figures | string | undefined): cell is Figures {
  return typeof cell === 'object'
}

function figuresOf(cell: Figures | string | undefined): Figures | undefined {
  return isFigures(cell) ? cell : undefined
}

function usOf(cell: Figures | string | undefined): number {
  return figuresOf(cell)?.usAll ?? Number.POSITIVE_INFINITY
}

/** Such a measurement is precise to three digits. */
function formatUs(us: number): string {
  return us < 100 ? us.toFixed(us < 10 ? 1 : 0) : Number(us.toPrecision(3)).toLocaleString('en')
}

function whole(value: number | undefined): string {
  return value === undefined ? '–' : Math.round(value).toLocaleString('en')
}
