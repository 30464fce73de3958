import type { TimeSpan } from '../budget.ts'
import type { Entry } from '../entries.ts'
import { type ExportProvider, type ExportRow, exportFormats, isRefund, type KindCounts, tokenKinds } from './exports.ts'

/*
 * Compares an export of a provider with the ledger, by the export's own windows. The law: in each window, of each model and kind,
 *
 *     export − billed = the sum of the classes + unexplained
 *
 * where a class needs evidence, and explains no more than that evidence bears.
 */

/** Named reasons for a difference, in the order in which they are looked for. */
export const differenceClasses = {
  not_ours:
    'of a key or project that is not named as ours, or, if none is named, of a model that this ledger has nothing of',
  returned: 'waived, or given back to the customer: the provider charges it all the same',
  boundary: 'counted in the window beside it: an answer near the edge',
  lost_attempts: 'requests beyond those of the ledger: attempts that lost, which the provider worked on',
  cut_short: 'answers that were not read to their end: their output is counted as far as it came',
  estimated: 'answers without figures of the provider, which were estimated',
} as const

export type DifferenceClass = keyof typeof differenceClasses

/** A difference of one kind of tokens in a window. */
type ReconciledRow = {
  from: string
  until: string
  model: string
  kind: keyof KindCounts
  export: number
  /** The tokens of debits that were neither waived nor given back. */
  billed: number
  classes: Partial<Record<DifferenceClass, number>>
  unexplained: number
}

/** Its times are spelled only if it is shown: most windows of an export have no difference. */
type FoundDifference = Omit<ReconciledRow, 'from' | 'until'> & TimeSpan

/**
 * @property rows those with any difference
 * @property compared how many figures were compared
 * @property unexplained tokens, of differences in either direction
 * @property ours debits of the provider
 * @property matched rows of the export that are ours, and of a model that the ledger has
 * @property models those of the debits, without owner and day
 * @property negative lines of the export that were skipped: refunds
 */
type Reconciliation = {
  rows: ReconciledRow[]
  compared: number
  unexplained: number
  ours: number
  matched: number
  models: string[]
  negative: number
}

type ReconcileOptions = {
  provider: ExportProvider
  /** Whether an entry was served by the provider, by the name of its upstream. */
  isOf(upstream: string | undefined): boolean
  /** Keys, projects, workspaces and users of the export that are ours; undefined: all. */
  owners?: ReadonlySet<string> | undefined
  /** Our models by the names of the export in any case, if they differ by more than owner and day. */
  names?: ReadonlyMap<string, string> | undefined
  /** Attempts that lost, by the request, from an access log. The requests that an export counts stand above it. */
  attempts?: ReadonlyMap<string, number> | undefined
}

/** An answer near the edge of a window may be counted in the next one: the longest distance, in ms. */
const edgeMs = 15 * 60_000

/** The most output that is explained by one answer that was not read to its end. */
const cutTokensMax = 8_192

type Use = {
  createdMs: number
  model: string
  tokens: KindCounts
  isUnbilled: boolean
  isCut: boolean
  isEstimated: boolean
  /** Attempts beside the one that was billed. */
  lost: number
}

/**
 * @property natural the uses by their own times
 * @property uses the same after some were moved over an edge
 * @property left what the export has beyond `uses`
 */
type WindowGroup = {
  fromMs: number
  untilMs: number
  model: string
  row: KindCounts
  requests: number | undefined
  left: KindCounts
  uses: Set<Use>
  natural: Use[]
}

/** @param entries of the time of the export, and `edgeMs` around it */
export async function reconcile(
  rows: readonly ExportRow[],
  entries: AsyncIterable<Entry> | Iterable<Entry>,
  options: ReconcileOptions,
): Promise<Reconciliation> {
  const { owners, names = [] } = options
  const windows = coverSpan(rows)
  const { uses, ours, models } = await readUses(entries, windows, options)
  const named = new Map(Array.from(names, ([theirs, ours]) => [theirs.toLowerCase(), ours]))
  const ourName = (model: string) => named.get(model.toLowerCase()) ?? named.get(plainName(model))
  const groups = new Map<string, WindowGroup>()
  const found: FoundDifference[] = []
  let [matched, negative] = [0, 0]
  for (const row of rows) {
    if (isRefund(row)) {
      negative += 1
      continue
    }
    const model = plainName(ourName(row.model) ?? row.model)
    const isKnown = models.has(model)
    // Rows that the operator names are ours, even if the ledger has nothing of them.
    const isOurs = owners ? row.owners.some((owner) => owners.has(owner)) : isKnown || ourName(row.model) !== undefined
    if (isOurs && isKnown) matched += 1
    if (isOurs) addRow(groups, row, model)
    else found.push(...tokenKinds.flatMap((kind) => foreign(row, kind)))
  }
  place(uses, groups, windows)
  moveEdges(groups, windows)
  for (const group of groups.values()) found.push(...tokenKinds.map((kind) => explain(group, kind)))
  const differing = found.filter((row) => row.export !== row.billed || row.unexplained !== 0)
  const unexplained = found.reduce((sum, row) => sum + Math.abs(row.unexplained), 0)
  const shown = differing.map(({ fromMs, untilMs, ...row }) => ({ from: iso(fromMs), until: iso(untilMs), ...row }))
  return { rows: shown, compared: found.length, unexplained, ours, matched, models: [...models], negative }
}

/** A model without the parts by which its provider and ours may spell it otherwise: owner, day, case. */
function plainName(model: string): string {
  return model
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/[-@](?:\d{4}-\d\d-\d\d|\d{8})(?:-v\d+(?::\d+)?)?$/, '')
}

/** Keeps debits of the export's time only. */
async function readUses(
  entries: AsyncIterable<Entry> | Iterable<Entry>,
  { fromMs, untilMs }: TimeSpan,
  { provider, isOf, attempts }: ReconcileOptions,
) {
  const { isWhole } = exportFormats[provider]
  const byRequest = new Map<string, Use>()
  const models = new Set<string>()
  let ours = 0
  for await (const { bill, returned, createdMs } of entries) {
    const use = returned && byRequest.get(returned.requestId)
    if (use) use.isUnbilled = true
    if (!bill || !isOf(bill.upstream)) continue
    ours += 1
    const model = plainName(bill.model)
    models.add(model)
    if (createdMs < fromMs - edgeMs || createdMs >= untilMs + edgeMs) continue
    const { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens, outputTokens } = bill.usage
    const write = cacheWriteTokens + cacheWrite1hTokens
    const tokens = isWhole
      ? { input: inputTokens + cacheReadTokens + write, cache_read: 0, cache_write: 0, output: outputTokens }
      : { input: inputTokens, cache_read: cacheReadTokens, cache_write: write, output: outputTokens }
    const isEstimated = bill.usageSource === 'estimated'
    const isCut = bill.usageSource === 'partial' || (isEstimated && bill.outcome !== 'ok')
    const isUnbilled = bill.usageSource === 'waived'
    const lost = attempts?.get(bill.requestId) ?? 0
    byRequest.set(bill.requestId, { createdMs, model, tokens, isUnbilled, isCut, isEstimated, lost })
  }
  return { uses: [...byRequest.values()], ours, models }
}

function addRow(groups: Map<string, WindowGroup>, row: ExportRow, model: string): void {
  const { fromMs, untilMs, tokens, requests } = row
  const name = `${fromMs} ${untilMs} ${model}`
  const group = groups.get(name) ?? createGroup(row, model)
  groups.set(name, group)
  for (const kind of tokenKinds) {
    group.row[kind] += tokens[kind]
    group.left[kind] += tokens[kind]
  }
  if (requests !== undefined) group.requests = (group.requests ?? 0) + requests
}

function createGroup({ fromMs, untilMs }: TimeSpan, model: string): WindowGroup {
  const counts = { row: { ...noTokens }, left: { ...noTokens }, requests: undefined }
  return { fromMs, untilMs, model, ...counts, uses: new Set(), natural: [] }
}

/** Windows without a gap from the first to the last of an export. */
type Cover = TimeSpan & { at: ReturnType<typeof findSpans<TimeSpan>> }

/** The windows of an export, and the gaps between them: the export has nothing there, but the ledger may. Refunds are left out. */
export function coverSpan(rows: readonly ExportRow[]): Cover {
  const windows = new Map<string, TimeSpan>()
  for (const row of rows) if (!isRefund(row)) windows.set(`${row.fromMs} ${row.untilMs}`, row)
  const sorted = [...windows.values()].sort((one, other) => one.fromMs - other.fromMs)
  const gaps: TimeSpan[] = []
  let endMs = sorted[0]?.fromMs ?? 0
  for (const { fromMs, untilMs } of sorted) {
    if (fromMs > endMs) gaps.push({ fromMs: endMs, untilMs: fromMs })
    endMs = Math.max(endMs, untilMs)
  }
  return { fromMs: sorted[0]?.fromMs ?? 0, untilMs: endMs, at: findSpans([...sorted, ...gaps]) }
}

/** @returns a search for the spans at a moment, or so many ms beside it, the latest first */
function findSpans<Span extends TimeSpan>(spans: readonly Span[]): (ms: number, besideMs: number) => Generator<Span> {
  const sorted = spans.toSorted((one, other) => one.fromMs - other.fromMs)
  let reachMs = -Infinity
  // How far the spans until here reach, as some may overlap.
  const reaches = sorted.map(({ untilMs }) => (reachMs = Math.max(reachMs, untilMs)))
  return function* (ms, besideMs) {
    let [low, high] = [0, sorted.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (sorted[middle]!.fromMs <= ms + besideMs) low = middle + 1
      else high = middle
    }
    for (let at = low - 1; at >= 0 && reaches[at]! > ms - besideMs; at--)
      if (sorted[at]!.untilMs > ms - besideMs) yield sorted[at]!
  }
}

/** Puts each use into its window, and those just outside of the export where they make a difference smaller. */
function place(uses: readonly Use[], groups: Map<string, WindowGroup>, windows: Cover): void {
  const outside: Use[] = []
  for (const use of uses) {
    const nameIn = ({ fromMs, untilMs }: TimeSpan) => `${fromMs} ${untilMs} ${use.model}`
    const around = [...windows.at(use.createdMs, 0)]
    const span = around.find((one) => groups.has(nameIn(one))) ?? around[0]
    if (!span) {
      outside.push(use)
      continue
    }
    // The export may have nothing of the model in this window.
    const group = groups.get(nameIn(span)) ?? createGroup(span, use.model)
    groups.set(nameIn(span), group)
    add(group, use)
    group.natural.push(use)
  }
  const near = groupsNear(groups)
  for (const use of outside) {
    const group = near(use, 0)
    if (group) add(group, use)
  }
}

/** @returns a search for the nearest window of a use's model that is better off with it by more than so many tokens */
function groupsNear(groups: Map<string, WindowGroup>): (use: Use, moreThan: number) => WindowGroup | undefined {
  const byModel = new Map(
    Array.from(
      Map.groupBy(groups.values(), ({ model }) => model),
      ([model, all]) => [model, findSpans(all)],
    ),
  )
  return (use, moreThan) => {
    let [nearest, leastMs]: [WindowGroup | undefined, number] = [undefined, Infinity]
    for (const group of byModel.get(use.model)?.(use.createdMs, edgeMs) ?? []) {
      const distanceMs = Math.max(group.fromMs - use.createdMs, use.createdMs - group.untilMs)
      if (distanceMs >= leastMs || group.uses.has(use) || gain(group, use, 1) <= moreThan) continue
      ;[nearest, leastMs] = [group, distanceMs]
    }
    return nearest
  }
}

function add(group: WindowGroup, use: Use): void {
  group.uses.add(use)
  for (const kind of tokenKinds) group.left[kind] -= use.tokens[kind]
}

const noTokens: KindCounts = { input: 0, cache_read: 0, cache_write: 0, output: 0 }

/** Moves uses near an edge into the window beside it, or out of the export, if that makes the differences smaller. */
function moveEdges(groups: Map<string, WindowGroup>, windows: Cover): void {
  const near = groupsNear(groups)
  for (const group of groups.values())
    for (const use of group.natural) {
      const better = gain(group, use, -1)
      if (better <= 0 || !isNearEdge(group, use)) continue
      const beside = near(use, -better)
      if (!beside && !isNearEdge(windows, use)) continue
      group.uses.delete(use)
      for (const kind of tokenKinds) group.left[kind] += use.tokens[kind]
      if (beside) add(beside, use)
    }
}

function isNearEdge({ fromMs, untilMs }: TimeSpan, { createdMs }: Use): boolean {
  return createdMs - fromMs <= edgeMs || untilMs - createdMs <= edgeMs
}

/** By how much the differences become smaller if a use is added (1) or taken away (−1). */
function gain({ left }: WindowGroup, { tokens }: Use, sign: 1 | -1): number {
  return tokenKinds.reduce((sum, kind) => sum + Math.abs(left[kind]) - Math.abs(left[kind] - sign * tokens[kind]), 0)
}

function total(uses: Iterable<Use>, kind: keyof KindCounts): number {
  let sum = 0
  for (const { tokens } of uses) sum += tokens[kind]
  return sum
}

/** Each class takes as much of the rest as its evidence bears. */
function explain(group: WindowGroup, kind: keyof KindCounts): FoundDifference {
  const { fromMs, untilMs, model, row } = group
  const uses = [...group.uses]
  const classes: ReconciledRow['classes'] = {}
  const own = total(group.natural, kind)
  const billed = total(
    group.natural.filter(({ isUnbilled }) => !isUnbilled),
    kind,
  )
  if (own > billed) classes.returned = own - billed
  const moved = total(uses, kind) - own
  if (moved !== 0) classes.boundary = moved
  let left = group.left[kind]
  const take = (name: DifferenceClass, leastTokens: number, mostTokens: number) => {
    const taken = Math.max(leastTokens, Math.min(mostTokens, left))
    if (taken !== 0) classes[name] = taken
    left -= taken
  }
  const largest = uses.reduce((most, { tokens }) => Math.max(most, tokens[kind]), 0)
  const lost =
    group.requests === undefined ? uses.reduce((sum, use) => sum + use.lost, 0) : group.requests - uses.length
  take('lost_attempts', 0, Math.max(0, lost) * largest)
  take('cut_short', 0, kind === 'output' ? cutTokensMax * uses.filter(({ isCut }) => isCut).length : 0)
  const guessed = total(
    uses.filter(({ isEstimated }) => isEstimated),
    kind,
  )
  take('estimated', -guessed, guessed)
  return { fromMs, untilMs, model, kind, export: row[kind], billed, classes, unexplained: left }
}

function foreign({ fromMs, untilMs, model, tokens }: ExportRow, kind: keyof KindCounts): FoundDifference[] {
  if (tokens[kind] === 0) return []
  const shown = { fromMs, untilMs, model, kind, export: tokens[kind], billed: 0 }
  return [{ ...shown, classes: { not_ours: tokens[kind] }, unexplained: 0 }]
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace('.000', '')
}
