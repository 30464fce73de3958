import type { TimeSpan } from '../budget.ts'
import { formatCredits } from '../credit.ts'
import type { Entry } from '../entries.ts'
import { type ExportProvider, type ExportRow, exportFormats, isRefund, type KindCounts, tokenKinds } from './exports.ts'

/*
 * Compares an export of a provider with the ledger, in the time windows of the export. This law holds for each window,
 * model and kind of tokens:
 *
 *     export − billed = the sum of the classes + unexplained
 *
 * A class is a named reason for a difference. It explains no more than its evidence supports.
 */

/** Named reasons why an export differs from the ledger, in the order in which they are applied. */
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

/**
 * A difference between the provider's charge and the cost of the same answers in the ledger.
 *
 * - `free`: the provider charged nothing for some of the tokens, as for a free allowance.
 * - `rate`: all tokens agree, so the provider's prices are not those of the `cost` list.
 */
type CostDifference = { from: string; until: string; model: string; charged: string; cost: string; class: CostClass }
type CostClass = 'free' | 'rate'

/** A difference between export and ledger, in one kind of tokens and one time span (`from` to `until`). */
type ReconciledRow = {
  from: string
  until: string
  model: string
  kind: keyof KindCounts
  export: number
  /** The tokens of debits that were not waived and not given back. */
  billed: number
  classes: Partial<Record<DifferenceClass, number>>
  unexplained: number
}

/** A difference with its times in ms. Times are formatted only for the differences that are shown. */
type FoundDifference = Omit<ReconciledRow, 'from' | 'until'> & TimeSpan

/**
 * The result of a comparison.
 * @property rows the counts that differ between the export and the ledger
 * @property compared how many counts were compared, equal or not
 * @property unexplained the number of tokens whose difference has no known cause, whichever side has more
 * @property ours the number of debits for the provider in the ledger
 * @property models the names of the models in these debits, without owner and date
 * @property matched the number of usage rows of our owners in the export whose model is in `models`; see `owners`
 * @property negative the number of refund rows in the export, which are skipped
 * @property costs the differences in money, if the export has charges and the entries have costs
 */
type Reconciliation = {
  rows: ReconciledRow[]
  compared: number
  unexplained: number
  ours: number
  matched: number
  models: string[]
  negative: number
  costs: CostDifference[]
}

type ReconcileOptions = {
  provider: ExportProvider
  /** Whether an upstream of this name belongs to the provider. Entries of other upstreams are not compared. */
  isOf(upstream: string | undefined): boolean
  /** The keys, projects, workspaces and users in the export that are ours. Undefined means that all are ours. */
  owners?: ReadonlySet<string> | undefined
  /**
   * Our names of models, by the names in the export. Upper and lower case do not matter. Needed only if the two names
   * of a model differ by more than a vendor prefix and a date.
   */
  names?: ReadonlyMap<string, string> | undefined
  /** The number of unsuccessful attempts of each request, by request id. An export of the provider counts them too. */
  attempts?: ReadonlyMap<string, number> | undefined
}

/** An answer within this many ms of a window's edge may be counted in the adjacent window. */
const edgeMs = 15 * 60_000

/** An answer that was not read to its end can explain at most this many output tokens. */
const cutTokensMax = 8_192

type Use = {
  createdMs: number
  model: string
  tokens: KindCounts
  isUnbilled: boolean
  isCut: boolean
  isEstimated: boolean
  /** The cost by the provider's price list; undefined if none was configured. */
  costNanos: bigint | undefined
  /** The number of unsuccessful attempts of the request. */
  lost: number
}

/**
 * The figures of one model in one window of the export.
 * @property natural the debits ("uses") whose own times lie in this window
 * @property uses the debits that count in this window. Debits near an edge may be moved to the adjacent window
 * @property left the tokens of the export minus the tokens of `uses`
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

/** Compares an export with entries. @param entries must cover the export's time, and `edgeMs` before and after it */
export async function reconcile(
  rows: readonly ExportRow[],
  entries: AsyncIterable<Entry> | Iterable<Entry>,
  options: ReconcileOptions,
): Promise<Reconciliation> {
  const { owners, names = [] } = options
  const windows = coverSpan(rows)
  const charges = new Map<string, Charge>()
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
    // If the operator lists our owners (keys, projects, workspaces, users), all rows of these owners are ours. This is
    // so even if the ledger has no debit of the row's model.
    const isOurs = owners ? row.owners.some((owner) => owners.has(owner)) : isKnown || ourName(row.model) !== undefined
    if (isOurs) addCharge(charges, row, model)
    if (row.isCharge) continue
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
  const costs = [...compareCosts(charges.values(), groups)]
  return { rows: shown, compared: found.length, unexplained, ours, matched, models: [...models], negative, costs }
}

/** Removes the parts of a model's name that a provider may spell differently: owner, date, case. */
function plainName(model: string): string {
  return model
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/[-@](?:\d{4}-\d\d-\d\d|\d{8})(?:-v\d+(?::\d+)?)?$/, '')
}

/** Reads the provider's debits. Keeps only those in the export's time span, or within `edgeMs` of it. */
async function readUses(
  entries: AsyncIterable<Entry> | Iterable<Entry>,
  { fromMs, untilMs }: TimeSpan,
  { provider, isOf, attempts }: ReconcileOptions,
) {
  const { isWhole } = exportFormats[provider]
  const byRequest = new Map<string, Use>()
  const models = new Set<string>()
  let ours = 0
  for await (const { bill, returned, createdMs, details } of entries) {
    const use = returned && byRequest.get(returned.requestId)
    if (use) use.isUnbilled = true
    if (!bill || !isOf(bill.upstream)) continue
    ours += 1
    const model = plainName(bill.model)
    models.add(model)
    if (createdMs < fromMs - edgeMs || createdMs >= untilMs + edgeMs) continue
    const { inputTokens, cacheReadTokens, cacheWriteTokens: write, outputTokens } = bill.usage
    const tokens = isWhole
      ? { input: inputTokens + cacheReadTokens + write, cache_read: 0, cache_write: 0, output: outputTokens }
      : { input: inputTokens, cache_read: cacheReadTokens, cache_write: write, output: outputTokens }
    const isEstimated = bill.usageSource === 'estimated'
    const isCut = bill.usageSource === 'partial' || (isEstimated && bill.outcome !== 'ok')
    const isUnbilled = bill.usageSource === 'waived'
    const lost = attempts?.get(bill.requestId) ?? 0
    const { costNanos } = details ?? {}
    byRequest.set(bill.requestId, { createdMs, model, tokens, isUnbilled, isCut, isEstimated, costNanos, lost })
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

/** The time that an export covers. `at` finds the windows and the gaps between windows that are near a moment. */
type Cover = TimeSpan & { at: ReturnType<typeof findSpans<TimeSpan>> }

/**
 * Returns the windows (the time spans of the rows) of an export, and the gaps between them. In a gap, the export has no
 * usage, but the ledger may have some. Refunds are left out.
 */
export function coverSpan(rows: readonly ExportRow[]): Cover {
  const windows = new Map<string, TimeSpan>()
  for (const row of rows) if (!isRefund(row) && !row.isCharge) windows.set(`${row.fromMs} ${row.untilMs}`, row)
  const sorted = [...windows.values()].sort((one, other) => one.fromMs - other.fromMs)
  const gaps: TimeSpan[] = []
  let endMs = sorted[0]?.fromMs ?? 0
  for (const { fromMs, untilMs } of sorted) {
    if (fromMs > endMs) gaps.push({ fromMs: endMs, untilMs: fromMs })
    endMs = Math.max(endMs, untilMs)
  }
  return { fromMs: sorted[0]?.fromMs ?? 0, untilMs: endMs, at: findSpans([...sorted, ...gaps]) }
}

/** @returns a function that finds the spans that are at most `besideMs` away from a moment, the latest first */
function findSpans<Span extends TimeSpan>(spans: readonly Span[]): (ms: number, besideMs: number) => Generator<Span> {
  const sorted = spans.toSorted((one, other) => one.fromMs - other.fromMs)
  let reachMs = -Infinity
  // For each span: the latest end of this span and of all spans before it. The search below goes back until this time
  // is too early. The end of a single span is not enough, because an earlier span may end later.
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

/**
 * Assigns each use (a debit) to its window. A use just outside the export is added to a near window if that reduces the
 * difference between the export and the ledger.
 */
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
    // If the export has no row of this model in this window, there is no group yet.
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

/**
 * Returns a function that finds the nearest window for a use (a debit). Adding the use to that window must reduce the
 * differences between export and ledger by more than `moreThan` tokens.
 */
function groupsNear(groups: Map<string, WindowGroup>): (use: Use, moreThan: number) => WindowGroup | undefined {
  const near = findGroups(groups)
  return (use, moreThan) => {
    let [nearest, leastMs]: [WindowGroup | undefined, number] = [undefined, Infinity]
    for (const group of near(use.model, use.createdMs, edgeMs)) {
      const distanceMs = Math.max(group.fromMs - use.createdMs, use.createdMs - group.untilMs)
      if (distanceMs >= leastMs || group.uses.has(use) || gain(group, use, 1) <= moreThan) continue
      ;[nearest, leastMs] = [group, distanceMs]
    }
    return nearest
  }
}

/** Returns a function that finds the windows of a model within `besideMs` of a moment. */
function findGroups(groups: Map<string, WindowGroup>) {
  const byModel = new Map(
    Array.from(
      Map.groupBy(groups.values(), ({ model }) => model),
      ([model, all]) => [model, findSpans(all)],
    ),
  )
  return (model: string, ms: number, besideMs: number) => byModel.get(model)?.(ms, besideMs) ?? []
}

function add(group: WindowGroup, use: Use): void {
  group.uses.add(use)
  for (const kind of tokenKinds) group.left[kind] -= use.tokens[kind]
}

const noTokens: KindCounts = { input: 0, cache_read: 0, cache_write: 0, output: 0 }

/** Moves answers near a window's edge to the adjacent window, or out of the export, if that reduces the differences. */
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

/**
 * Returns by how many tokens the difference of a window shrinks if a use (a debit) is added or removed.
 * @param sign 1 to add the use, −1 to remove it
 */
function gain({ left }: WindowGroup, { tokens }: Use, sign: 1 | -1): number {
  return tokenKinds.reduce((sum, kind) => sum + Math.abs(left[kind]) - Math.abs(left[kind] - sign * tokens[kind]), 0)
}

function total(uses: Iterable<Use>, kind: keyof KindCounts): number {
  let sum = 0
  for (const { tokens } of uses) sum += tokens[kind]
  return sum
}

/**
 * Splits the difference between the provider's count of tokens and ours among classes of causes, one class after the
 * other. A class takes no more than its evidence supports.
 */
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

/** The provider's charge for a model in a window. @property isFree whether some tokens of the model cost nothing */
type Charge = TimeSpan & { model: string; chargeNanos: bigint; rows: number; isFree: boolean }

function addCharge(charges: Map<string, Charge>, row: ExportRow, model: string): void {
  const { fromMs, untilMs, tokens, chargeNanos } = row
  if (chargeNanos === undefined) return
  const name = `${fromMs} ${untilMs} ${model}`
  const charge = charges.get(name) ?? { fromMs, untilMs, model, chargeNanos: 0n, rows: 0, isFree: false }
  charges.set(name, charge)
  charge.chargeNanos += chargeNanos
  charge.rows += 1
  charge.isFree ||= chargeNanos === 0n && (row.isCharge === true || tokenKinds.some((kind) => tokens[kind] > 0))
}

/**
 * Compares charges with the costs of the entries in their windows. A difference is reported if the token counts agree.
 * It is also reported if some tokens were free and the charge is lower than the costs.
 */
function* compareCosts(charges: Iterable<Charge>, groups: Map<string, WindowGroup>): Iterable<CostDifference> {
  const near = findGroups(groups)
  for (const { fromMs, untilMs, model, chargeNanos, rows, isFree } of charges) {
    const middleMs = (fromMs + untilMs) / 2
    const within = [...near(model, middleMs, untilMs - middleMs)].filter(
      (group) => group.fromMs >= fromMs && group.untilMs <= untilMs,
    )
    const uses = within.flatMap((group) => [...group.uses])
    if (uses.length === 0 || uses.some(({ costNanos }) => costNanos === undefined)) continue
    const cost = uses.reduce((sum, { costNanos }) => sum + costNanos!, 0n)
    const more = chargeNanos - cost
    // Each cost and each row of the export is rounded, which explains a difference of one nano-credit for each of them.
    if (BigInt(uses.length + rows) >= (more < 0n ? -more : more)) continue
    const isSame = within.every(({ left }) => tokenKinds.every((kind) => left[kind] === 0))
    const found = isFree && more < 0n ? 'free' : isSame ? 'rate' : undefined
    const told = { from: iso(fromMs), until: iso(untilMs), model, charged: formatCredits(chargeNanos) }
    if (found) yield { ...told, cost: formatCredits(cost), class: found }
  }
}

function foreign({ fromMs, untilMs, model, tokens }: ExportRow, kind: keyof KindCounts): FoundDifference[] {
  if (tokens[kind] === 0) return []
  const shown = { fromMs, untilMs, model, kind, export: tokens[kind], billed: 0 }
  return [{ ...shown, classes: { not_ours: tokens[kind] }, unexplained: 0 }]
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace('.000', '')
}
