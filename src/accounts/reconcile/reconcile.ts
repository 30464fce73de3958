import type { Entry } from '../entries.ts'
import { type ExportProvider, type ExportRow, exportFormats, type KindCounts, tokenKinds } from './exports.ts'

/*
 * Compares an export of a provider with the ledger, by the export's own windows. The law: in each window, of each model and kind,
 *
 *     export − billed = the sum of the classes + unexplained
 *
 * where a class needs evidence, and explains no more than that evidence bears.
 */

/** Named reasons for a difference, in the order in which they are looked for. */
export const differenceClasses = {
  not_ours: 'of a key, project or model that this ledger has nothing of',
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

type ReconcileOptions = {
  provider: ExportProvider
  /** Whether an entry was served by the provider, by the name of its upstream. */
  isOf(upstream: string | undefined): boolean
  /** Keys, projects, workspaces and users of the export that are ours; undefined: all. */
  owners?: ReadonlySet<string> | undefined
  /** Our models by the names of the export, if they differ by more than owner and day. */
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

/** @property natural the uses by their own times @property uses the same after some were moved over an edge */
type WindowGroup = {
  fromMs: number
  untilMs: number
  model: string
  row: KindCounts
  requests: number | undefined
  uses: Set<Use>
  natural: Use[]
}

/** @param entries of the time of the export, and `edgeMs` around it. @returns rows with any difference, how many were compared, and the debits of the provider */
export async function reconcile(
  rows: readonly ExportRow[],
  entries: AsyncIterable<Entry> | Iterable<Entry>,
  options: ReconcileOptions,
): Promise<{ rows: ReconciledRow[]; compared: number; unexplained: number; ours: number }> {
  const { uses, models } = await readUses(entries, options)
  const nameOf = (model: string) => plainName(options.names?.get(model) ?? model)
  const isOurs = ({ owners, model }: ExportRow) =>
    models.has(nameOf(model)) && (!options.owners || owners.some((owner) => options.owners!.has(owner)))
  const groups = new Map<string, WindowGroup>()
  const found: ReconciledRow[] = []
  for (const row of rows) {
    if (isOurs(row)) addRow(groups, row, nameOf(row.model))
    else found.push(...tokenKinds.flatMap((kind) => foreign(row, kind)))
  }
  place(uses, groups)
  moveEdges(groups)
  for (const group of groups.values()) found.push(...tokenKinds.map((kind) => explain(group, kind)))
  const differing = found.filter((row) => row.export !== row.billed || row.unexplained !== 0)
  const unexplained = found.reduce((sum, row) => sum + Math.abs(row.unexplained), 0)
  return { rows: differing, compared: found.length, unexplained, ours: uses.length }
}

/** A model without the parts by which its provider and ours may spell it otherwise: owner, day, case. */
function plainName(model: string): string {
  return model
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/[-@](?:\d{4}-\d\d-\d\d|\d{8})(?:-v\d+(?::\d+)?)?$/, '')
}

async function readUses(
  entries: AsyncIterable<Entry> | Iterable<Entry>,
  { provider, isOf, attempts }: ReconcileOptions,
) {
  const { isWhole } = exportFormats[provider]
  const byRequest = new Map<string, Use>()
  const models = new Set<string>()
  for await (const { bill, returned, createdMs } of entries) {
    const use = returned && byRequest.get(returned.requestId)
    if (use) use.isUnbilled = true
    if (!bill || !isOf(bill.upstream)) continue
    const { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens, outputTokens } = bill.usage
    const write = cacheWriteTokens + cacheWrite1hTokens
    const tokens = isWhole
      ? { input: inputTokens + cacheReadTokens + write, cache_read: 0, cache_write: 0, output: outputTokens }
      : { input: inputTokens, cache_read: cacheReadTokens, cache_write: write, output: outputTokens }
    const model = plainName(bill.model)
    models.add(model)
    const isEstimated = bill.usageSource === 'estimated'
    const isCut = bill.usageSource === 'partial' || (isEstimated && bill.outcome !== 'ok')
    const isUnbilled = bill.usageSource === 'waived'
    const lost = attempts?.get(bill.requestId) ?? 0
    byRequest.set(bill.requestId, { createdMs, model, tokens, isUnbilled, isCut, isEstimated, lost })
  }
  return { uses: [...byRequest.values()], models }
}

function addRow(groups: Map<string, WindowGroup>, row: ExportRow, model: string): void {
  const { fromMs, untilMs, tokens, requests } = row
  const name = `${fromMs} ${untilMs} ${model}`
  const known = groups.get(name)
  if (!known) {
    groups.set(name, { fromMs, untilMs, model, row: { ...tokens }, requests, uses: new Set(), natural: [] })
    return
  }
  for (const kind of tokenKinds) known.row[kind] += tokens[kind]
  if (requests !== undefined) known.requests = (known.requests ?? 0) + requests
}

/** Puts each use into its window, and those just outside of the export where they make a difference smaller. */
function place(uses: readonly Use[], groups: Map<string, WindowGroup>): void {
  const spans = new Map(
    Array.from(groups.values(), ({ fromMs, untilMs }) => [`${fromMs} ${untilMs}`, { fromMs, untilMs }]),
  )
  const outside: Use[] = []
  for (const use of uses) {
    const span = spans.values().find((one) => distance(one, use) === 0)
    if (!span) {
      outside.push(use)
      continue
    }
    const name = `${span.fromMs} ${span.untilMs} ${use.model}`
    // The export has nothing of the model in this window.
    const group = groups.get(name) ?? {
      ...span,
      ...nothing,
      model: use.model,
      row: { ...noTokens },
      uses: new Set(),
      natural: [],
    }
    groups.set(name, group)
    group.uses.add(use)
    group.natural.push(use)
  }
  for (const use of outside) {
    const isNear = (one: WindowGroup) =>
      one.model === use.model && distance(one, use) <= edgeMs && gain(one, use, 1) > 0
    groups.values().find(isNear)?.uses.add(use)
  }
}

const noTokens: KindCounts = { input: 0, cache_read: 0, cache_write: 0, output: 0 }
const nothing = { requests: undefined }

function distance({ fromMs, untilMs }: Pick<WindowGroup, 'fromMs' | 'untilMs'>, { createdMs }: Use): number {
  return createdMs < fromMs ? fromMs - createdMs : createdMs >= untilMs ? createdMs - untilMs + 1 : 0
}

/** Moves uses near an edge into the window beside it, or out of the export, if that makes the differences smaller. */
function moveEdges(groups: Map<string, WindowGroup>): void {
  const all = [...groups.values()]
  for (const group of all)
    for (const use of [...group.uses]) {
      const isNear = use.createdMs - group.fromMs <= edgeMs || group.untilMs - use.createdMs <= edgeMs
      if (!isNear || distance(group, use) > 0 || gain(group, use, -1) <= 0) continue
      const beside = all.find((one) => one !== group && one.model === group.model && distance(one, use) <= edgeMs)
      if (beside && gain(group, use, -1) + gain(beside, use, 1) <= 0) continue
      group.uses.delete(use)
      beside?.uses.add(use)
    }
}

/** By how much the differences become smaller if a use is added (1) or taken away (−1). */
function gain(group: WindowGroup, { tokens }: Use, sign: 1 | -1): number {
  return tokenKinds.reduce((sum, kind) => {
    const left = rest(group, kind)
    return sum + Math.abs(left) - Math.abs(left - sign * tokens[kind])
  }, 0)
}

function rest({ row, uses }: WindowGroup, kind: keyof KindCounts): number {
  return row[kind] - total(uses, kind)
}

function total(uses: Iterable<Use>, kind: keyof KindCounts): number {
  let sum = 0
  for (const { tokens } of uses) sum += tokens[kind]
  return sum
}

/** Each class takes as much of the rest as its evidence bears. */
function explain(group: WindowGroup, kind: keyof KindCounts): ReconciledRow {
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
  let left = rest(group, kind)
  const take = (name: DifferenceClass, leastTokens: number, mostTokens: number) => {
    const taken = Math.max(leastTokens, Math.min(mostTokens, left))
    if (taken !== 0) classes[name] = taken
    left -= taken
  }
  const largest = Math.max(0, ...uses.map(({ tokens }) => tokens[kind]))
  const lost =
    group.requests === undefined ? uses.reduce((sum, use) => sum + use.lost, 0) : group.requests - uses.length
  take('lost_attempts', 0, Math.max(0, lost) * largest)
  take('cut_short', 0, kind === 'output' ? cutTokensMax * uses.filter(({ isCut }) => isCut).length : 0)
  const guessed = total(
    uses.filter(({ isEstimated }) => isEstimated),
    kind,
  )
  take('estimated', -guessed, guessed)
  return { from: iso(fromMs), until: iso(untilMs), model, kind, export: row[kind], billed, classes, unexplained: left }
}

function foreign({ fromMs, untilMs, model, tokens }: ExportRow, kind: keyof KindCounts): ReconciledRow[] {
  if (tokens[kind] === 0) return []
  const shown = { from: iso(fromMs), until: iso(untilMs), model, kind, export: tokens[kind], billed: 0 }
  return [{ ...shown, classes: { not_ours: tokens[kind] }, unexplained: 0 }]
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace('.000', '')
}
