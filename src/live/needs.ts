import { X509Certificate } from 'node:crypto'
import { hasEnded, StoreSilent } from '../accounts/account.ts'
import type { AccountRow, KeyRow } from '../accounts/book-rows.ts'
import type { Books } from '../accounts/books.ts'
import { renewsAt, type Spend, spentAt } from '../accounts/budget.ts'
import { type Calendar, createCalendar, quarterMs } from '../accounts/calendar.ts'
import { blocksAll } from '../accounts/ledger.ts'
import type { PersonRow } from '../accounts/persons.ts'
import type { Series, UsageQuestion } from '../accounts/usage/question.ts'
import type { NoticedNeed } from '../accounts/warnings.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { within } from '../host/timers.ts'
import { isLeap, listNeeds, type Need, type NeedFacts, needLimits } from '../operations/needs.ts'
import type { WebhookState } from '../operations/shapes.ts'
import { listFailing } from './status.ts'

/**
 * `lookMs`: the time between two reads of the store while no operator asks. `servicesMs`: the time between two checks
 * of the upstream accounts.
 */
const [lookMs, servicesMs] = [60_000, 5_000]

/**
 * If facts of the store are older than `freshMs`, an answer waits `patienceMs` for newer facts, and then uses the old
 * facts.
 */
const [freshMs, patienceMs] = [10_000, 500]

/** The time between two readings of the week's figures, in ms. Only this reading takes longer in a large store. */
const weekEveryMs = 300_000

/**
 * The most rows that one statement reads, and the most statements in one look at the store. If a store has more rows,
 * each look continues where the last one ended.
 */
const [pageMax, pagesMax] = [200, 10]

/** The most accounts whose spend of the week is kept (the highest spenders), and the most rows found for each need. */
const [spendersMax, foundMax] = [5_000, 1_000]

/** At most this many keys are checked as the cause of a sudden spend: the keys that spent most in the hour. */
const leapersMax = 20

/**
 * An account is examined if its balance is below this many times its spend of the week. No other account will run dry
 * soon, not even a new one.
 */
const dryTimes = 4n

const [dayMs, weekMs] = [86_400_000, 7 * 86_400_000]

type NeedParts = {
  gateway: Pick<Gateway, 'snapshots' | 'lastAnswers' | 'ledger' | 'nowMs' | 'clockMs'>
  books(): Promise<Books>
  listWebhooks(): readonly WebhookState[]
  tellClock(): NeedFacts['clock']
  /** Whether a webhook of this server wants `needs_changed`. Then this server looks for needs without being asked. */
  isTelling: boolean
  reportBug(bug: Error): void
}

type Services = NeedFacts['services']

/** Makes the list of needs (matters for an operator) from facts of the store and of this server. */
export class NeedWatch {
  readonly #parts: NeedParts
  readonly #calendar: Calendar
  readonly #accounts = new Sweep<AccountRow, 'dry' | 'spent'>(['dry', 'spent'])
  readonly #keys = new Sweep<KeyRow, 'unused' | 'spent'>(['unused', 'spent'])
  readonly #persons = new Sweep<PersonRow, 'spent'>(['spent'])
  #week: { spent: ReadonlyMap<string, bigint>; sinceMs: number; readMs: number } | undefined
  #hours: NeedFacts['hours'] = []
  /** When each need began, by id. Until the store's times are read, a need begins when this server finds it. */
  #sinceMs: ReadonlyMap<string, number> = new Map()
  /** When this server first found an upstream account not ready, in Unix ms. The key is model, upstream and account. */
  readonly #notReadyMs = new Map<string, number>()
  #services: Services = []
  #looking: Promise<void> | undefined
  #lookedMs: number | undefined
  #servicesMs = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(parts: NeedParts) {
    this.#parts = parts
    this.#calendar = createCalendar(parts.gateway.snapshots.current.config.reporting)
  }

  /** Called a few times a second. */
  tick(): void {
    const clockMs = this.#parts.gateway.clockMs()
    if (clockMs - this.#servicesMs >= servicesMs) {
      this.#servicesMs = clockMs
      this.#findServices()
    }
    if (this.#parts.isTelling && this.#ageMs() >= lookMs) void this.look()
  }

  /** Lists the present needs. If the store does not answer in time, its facts from an earlier reading are used. */
  async list(): Promise<Need[]> {
    this.#findServices()
    if (this.#ageMs() >= freshMs) await within(this.look(), patienceMs)
    return this.#makeList()
  }

  /** Finds the needs (what operators should act on) and records them in the store. Only one such look runs at once. */
  look(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#looking
  }

  #ageMs(): number {
    return this.#lookedMs === undefined ? Number.POSITIVE_INFINITY : this.#parts.gateway.clockMs() - this.#lookedMs
  }

  async #look(): Promise<void> {
    const { gateway, isTelling, reportBug } = this.#parts
    this.#lookedMs = gateway.clockMs()
    try {
      const books = await this.#parts.books()
      await this.#readStore(books)
      this.#findServices()
      const needs = this.#makeList()
      const { adminUrl } = gateway.snapshots.current.config
      const consoleUrl = adminUrl === undefined ? '' : `${adminUrl.replace(/\/$/, '')}/console/`
      const noticed = needs.map((one) => noticeOf(one, consoleUrl))
      this.#sinceMs = await books.noteNeeds(noticed, isTelling)
    } catch (error) {
      // If the store does not answer, another part logs that.
      if (!(error instanceof StoreSilent)) reportBug(error as Error)
    }
  }

  async #readStore(books: Books): Promise<void> {
    const nowMs = this.#parts.gateway.nowMs()
    await this.#readWeek(books)
    this.#hours = await readHours(books, this.#calendar, nowMs)
    const page = { limit: pageMax, sort: 'created' } as const
    await this.#accounts.go((beyond) => books.pageAccounts({ ...page, beyond }), {
      dry: (row) => {
        const spentNanos = this.#spentOf(row)
        return row.state === 'active' && spentNanos > 0n && row.balanceNanos < dryTimes * spentNanos
      },
      spent: (row) => row.state === 'active' && isBudgetSpent(row, nowMs),
    })
    await this.#keys.go((beyond) => books.pageKeys({ ...page, beyond }), {
      // Keys of sign-ins are left out, because they expire without an operator.
      unused: (row) => row.session === undefined && isUsable(row, nowMs) && nowMs - usedMs(row) >= needLimits.unusedMs,
      spent: (row) => isUsable(row, nowMs) && isBudgetSpent(row, nowMs),
    })
    await this.#persons.go((beyond) => books.pagePersons({ limit: pageMax, beyond }), {
      spent: (row) => isBudgetSpent(row, nowMs),
    })
  }

  #spentOf({ id }: AccountRow): bigint {
    return this.#week?.spent.get(id) ?? 0n
  }

  async #readWeek(books: Books): Promise<void> {
    const { nowMs, clockMs } = this.#parts.gateway
    if (this.#week && clockMs() - this.#week.readMs < weekEveryMs) return
    const days = 7
    let sinceMs = this.#calendar.periodOf(nowMs(), 'day').endMs
    for (let day = 0; day < days; day++) sinceMs = this.#calendar.periodOf(sinceMs - 1, 'day').startMs
    const ranked = await books.rankSpent({ by: 'account', days, nowMs: nowMs(), top: spendersMax })
    this.#week = { spent: new Map(ranked.map(({ id, nanos }) => [id, nanos])), sinceMs, readMs: clockMs() }
  }

  #findServices(): void {
    const { snapshots, nowMs } = this.#parts.gateway
    const { pool, config } = snapshots.current
    const seen = new Set<string>()
    this.#services = pool
      .list(config.catalog.entries)
      .flatMap(({ model, upstream, account, state, cause, failures }) => {
        if (state === 'ready' || state === 'off' || state === 'disabled') return []
        const place = `${model} ${upstream} ${account ?? ''}`
        seen.add(place)
        if (!this.#notReadyMs.has(place)) this.#notReadyMs.set(place, nowMs())
        const sinceMs = this.#notReadyMs.get(place)!
        return [{ model, upstream, account: account ?? null, state, cause: cause ?? null, failures, sinceMs }]
      })
    for (const place of this.#notReadyMs.keys()) if (!seen.has(place)) this.#notReadyMs.delete(place)
  }

  #makeList(): Need[] {
    const { nowMs } = this.#parts.gateway
    const needs = listNeeds(this.#facts())
    const sinceOf = ({ id }: Need) => this.#sinceMs.get(id) ?? nowMs()
    this.#sinceMs = new Map(needs.map((one) => [one.id, sinceOf(one)]))
    return needs.map((one) => ({ ...one, since: one.since ?? new Date(sinceOf(one)).toISOString() }))
  }

  #facts(): NeedFacts {
    const { gateway, listWebhooks, tellClock } = this.#parts
    const { config } = gateway.snapshots.current
    const nowMs = gateway.nowMs()
    const calendar = this.#calendar
    const grantMs = calendar.periodOf(nowMs, 'month').endMs
    const lines = new Map(this.#keys.rows('spent').map((row) => [row.scope, row]))
    return {
      nowMs,
      accounts: this.#accounts.rows('dry').map((row) => ({
        ...{ id: row.id, name: row.name, balanceNanos: row.balanceNanos, spentNanos: this.#spentOf(row) },
        sinceMs: Math.max(this.#week?.sinceMs ?? 0, row.createdMs ?? 0),
        grantMs: row.bounds.grant && grantMs,
      })),
      spentAccounts: this.#accounts.rows('spent').map((row) => budgetOf(row, row.name, nowMs, calendar)),
      // Keys that replaced each other by rotation share one budget, so they are listed once.
      spentKeys: [...lines.values()].map((row) => ({
        ...budgetOf(row, nameOfKey(row), nowMs, calendar),
        accountName: row.accountName ?? '',
      })),
      spentPersons: this.#persons.rows('spent').map((row) => ({
        ...budgetOf(row, row.name ?? row.id, nowMs, calendar),
        accountId: row.accountId!,
      })),
      unusedKeys: this.#keys.rows('unused').map((row) => ({ ...namedKey(row), sinceMs: usedMs(row) })),
      hours: this.#hours,
      failingModels: listFailing(gateway),
      services: this.#services,
      webhooks: listWebhooks().flatMap(({ url, pending, last, last_failure }) =>
        pending > 0 && last && last.result !== 'ok'
          ? [{ url, pending, sinceMs: Date.parse((last_failure ?? last).at) }]
          : [],
      ),
      ledger: {
        isWritable: !blocksAll(gateway.ledger.whyBlocked()),
        blockedAccounts: gateway.ledger.backlog().blockedAccounts,
      },
      clock: tellClock(),
      certificates: [...endOf('admin', config.adminTls?.cert), ...endOf('client', config.tls?.cert)],
      prices: config.catalog.entries.flatMap(({ id, prices, plans }) =>
        [prices, ...(plans?.values() ?? [])].flatMap(({ rows }) =>
          rows.slice(1).map(({ fromMs }) => ({ model: id, fromMs })),
        ),
      ),
    }
  }
}

/**
 * Collects rows of a long list, separately for each condition (`Kind`) that a row can meet. Each call of `go` reads the
 * next pages of the list. A row that is read again replaces the row found before. At the end of the list, rows that the
 * list has no more are forgotten, such as people who were erased.
 */
class Sweep<Row extends { id: string; createdMs?: number | undefined }, Kind extends string> {
  readonly #found: ReadonlyMap<Kind, Map<string, Row>>
  /** The ids of rows that were found before the list was begun, and that were not read since. */
  #unread = new Set<string>()
  #beyond: readonly (string | number)[] | undefined

  constructor(kinds: readonly Kind[]) {
    this.#found = new Map(kinds.map((kind) => [kind, new Map<string, Row>()]))
  }

  async go(
    read: (beyond: readonly (string | number)[] | undefined) => Promise<readonly Row[]>,
    fits: Record<Kind, (row: Row) => boolean>,
  ): Promise<void> {
    for (let pages = 0; pages < pagesMax; pages++) {
      if (!this.#beyond) this.#unread = new Set([...this.#found.values()].flatMap((found) => [...found.keys()]))
      const rows = await read(this.#beyond)
      for (const { id } of rows) this.#unread.delete(id)
      for (const [kind, found] of this.#found)
        for (const row of rows) {
          found.delete(row.id)
          if (fits[kind](row) && found.size < foundMax) found.set(row.id, row)
        }
      const last = rows.at(-1)
      this.#beyond = last && rows.length === pageMax ? [last.createdMs ?? 0, last.id] : undefined
      if (this.#beyond) continue
      for (const found of this.#found.values()) for (const id of this.#unread) found.delete(id)
      return
    }
  }

  rows(kind: Kind): Row[] {
    return [...this.#found.get(kind)!.values()]
  }
}

/** Makes the data of a need for webhooks. @param consoleUrl the console's address; if empty, the link stays relative */
function noticeOf({ id, severity, text, link, command }: Need, consoleUrl: string): NoticedNeed {
  return { id, data: { need: id, severity, text, link: consoleUrl + link, command } }
}

type BudgetHolder = Pick<KeyRow, 'id' | 'spend'> & { bounds: { budget: KeyRow['bounds']['budget'] } }

function isBudgetSpent({ bounds: { budget }, spend }: BudgetHolder, nowMs: number): boolean {
  return budget !== undefined && spentAt(spend, nowMs) >= budget.nanos
}

/** Describes a budget that is spent now. */
function budgetOf({ id, bounds, spend }: BudgetHolder, name: string, nowMs: number, calendar: Calendar) {
  const budget = bounds.budget!
  const untilMs = renewsAt(calendar, budget, spend, nowMs)
  return { id, name, fromMs: (spend as Spend).fromMs, untilMs, budgetNanos: budget.nanos }
}

function isUsable({ revokedMs, expiresMs }: KeyRow, nowMs: number): boolean {
  return revokedMs === undefined && !hasEnded(expiresMs, nowMs)
}

/** Returns when a key was last used. A key that was never used has the time of its creation instead. */
function usedMs({ lastUsedMs, createdMs }: KeyRow): number {
  return lastUsedMs ?? createdMs ?? Number.POSITIVE_INFINITY
}

function nameOfKey({ label, prefix, id }: Pick<KeyRow, 'label' | 'prefix' | 'id'>): string {
  return label ?? prefix ?? id
}

function namedKey(row: KeyRow) {
  return { id: row.id, name: nameOfKey(row), accountName: row.accountName ?? '' }
}

function endOf<Listener extends string>(listener: Listener, certificate: string | undefined) {
  return certificate === undefined ? [] : [{ listener, endsMs: Date.parse(new X509Certificate(certificate).validTo) }]
}

/**
 * Reads the spend of this hour and the previous hour, and of the same two hours a week ago. Empty while figures are
 * incomplete.
 */
async function readHours(books: Books, calendar: Calendar, nowMs: number): Promise<NeedFacts['hours']> {
  const { startMs, endMs } = calendar.periodOf(nowMs, 'hour')
  const before = calendar.periodOf(startMs - 1, 'hour').startMs
  const now = await books.readUsage(questionOf([before, startMs, endMs]))
  const then = await books.readUsage(questionOf([before - dayMs, before, startMs, endMs].map((ms) => ms - weekMs)))
  if (now.folding || then.folding) return []
  const hours: NeedFacts['hours'][number][] = []
  for (const at of [1, 0]) {
    const [fromMs, untilMs] = at === 1 ? [startMs, endMs] : [before, startMs]
    const hour = {
      ...{ fromMs, spentNanos: costIn(now.total, at), weekAgoNanos: costIn(then.total, at + 1) },
      hasWeekAgo: [0, 1, 2].some((bucket) => costIn(then.total, bucket) > 0n),
    }
    // The key whose spend grew most is looked for only if the spend was unusually high.
    hours.push({ ...hour, key: isLeap(hour) ? await findLeaper(books, [fromMs, untilMs]) : undefined })
  }
  return hours
}

/**
 * Finds the key whose spend grew most, compared with the same hour a week ago. Only the top spenders of `hour` are
 * compared.
 */
async function findLeaper(books: Books, hour: readonly number[]) {
  const { groups } = await books.readUsage({ ...questionOf(hour), by: ['account', 'key'], top: leapersMax })
  const keys = groups.map(({ of }) => of[1]!).filter((id) => id !== '')
  const asked = {
    ...questionOf(hour.map((ms) => ms - weekMs)),
    by: ['key'] as const,
    only: { key: await books.listLines(keys) },
    top: keys.length,
  }
  const weekAgo = new Map(keys.length > 0 ? (await books.readUsage(asked)).groups.map((one) => [one.of[0]!, one]) : [])
  const gains = groups.map((one) => {
    const known = weekAgo.get(one.of[1]!)
    return { of: one.of, spentNanos: costIn(one, 0), gain: costIn(one, 0) - (known ? costIn(known, 0) : 0n) }
  })
  const [most] = gains.toSorted((a, b) => (a.gain > b.gain ? -1 : 1))
  if (!most?.of[1]) return undefined
  const ids = await books.listLines([most.of[1]])
  // A rotated key is named by its newest successor, because the first key of the line may be revoked.
  const [key] = await books.pageKeys({ ids, limit: 1, sort: '-created' })
  return key && { ...namedKey(key), spentNanos: most.spentNanos }
}

function costIn({ sums }: Series, bucket: number): bigint {
  return sums[0]![bucket] ?? 0n
}

/** Makes the question for the total cost of each span between two consecutive moments. */
function questionOf(moments: readonly number[]): UsageQuestion {
  const bounds = moments.map((ms) => ms / quarterMs)
  return { bounds, daysOf: undefined, by: [], only: {}, sums: ['cost'], times: [], top: 1, sort: 'cost' }
}
