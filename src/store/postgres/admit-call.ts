import type { BudgetLeft, DeskAnswer, DeskVerdict, KeyFigures, KeyScope, PlaceTaken } from '../../accounts/desk.ts'
import { verdictCodes } from './admit.ts'
import {
  type AccountShares,
  countOf,
  giveBack,
  type Identity,
  isDirty,
  keyOf,
  type OpenAsk,
  type Share,
} from './shares.ts'

/** An account, a key or a person that a call of `admit` checks. A `limit` or `budget` of `''` means none. */
type Scope = { share: Share; limit: number | ''; budget: bigint | ''; isKey: boolean; asks: readonly OpenAsk[] }

/** The fields of an ask (a question whether to admit a request) that name a limited key or person. */
const narrow = ['key', 'person'] as const satisfies (keyof OpenAsk)[]

const verdictOf = new Map(
  Object.entries(verdictCodes).map(([verdict, code]) => [code as string, verdict as DeskVerdict]),
)

/** The parameters of one call of `admit`, and the reader of its answer. */
type AdmitCall = {
  values: readonly unknown[]
  /** Updates the shares from an answer of the database. @returns answers for waiting asks, and the database's time */
  read(text: string): { answers: DeskAnswer[]; nowMs: number }
}

/**
 * Prepares a call of the database function `admit`.
 * @param accounts the accounts that the call concerns. The caller has removed their expired asks
 */
export function callOf(
  { id, startedMs }: Identity,
  leaseMs: number,
  turn: number,
  accounts: readonly AccountShares[],
): AdmitCall {
  const scopes = accounts.flatMap(scopesOf).sort((a, b) => (a.share.scope < b.share.scope ? -1 : 1))
  const placeOf = new Map(scopes.map(({ share }, index) => [share.scope, index + 1]))
  const asks = scopes.flatMap((scope) => scope.asks)
  const sent = scopes.map(({ share }) => share.heldNanos)
  const values = [
    id,
    leaseMs,
    turn,
    listOf(scopes, ({ share }) => share.scope),
    listOf(sent, (heldNanos) => heldNanos),
    listOf(scopes, ({ share }) => share.windowMs),
    listOf(scopes, ({ share }) => share.taken),
    listOf(scopes, ({ limit }) => limit),
    listOf(scopes, ({ budget }) => budget),
    listOf(scopes, ({ isKey }) => isKey),
    listOf(scopes, (scope) => scope.asks.length),
    ...narrow.map((name) => listOf(asks, ({ [name]: scope }) => (scope ? placeOf.get(scope.id)! : 0))),
    listOf(asks, ({ holdNanos }) => holdNanos),
    listOf(asks, ({ place }) => place === 'take'),
    startedMs,
  ]
  return { values, read: (text) => readAnswer(text, accounts, scopes, asks, sent, placeOf) }
}

/** Writes an array as PostgreSQL reads it; '' becomes NULL. Ids and numbers need no quotes. */
function listOf<T>(items: readonly T[], write: (item: T) => string | number | bigint | boolean): string {
  let text = '{'
  for (const [index, item] of items.entries()) {
    const value = write(item)
    text += (index === 0 ? '' : ',') + (value === '' ? 'NULL' : value)
  }
  return `${text}}`
}

function scopesOf(account: AccountShares): Scope[] {
  const { own, keys, asks } = account
  const last = asks.at(-1)
  if (last) account.hasBudget = last.budgetNanos !== undefined
  const scopes: Scope[] = [{ share: own, limit: limitOf(last), budget: last?.budgetNanos ?? '', isKey: false, asks }]
  const limited = new Map<string, KeyScope>()
  for (const ask of asks) for (const name of narrow) if (ask[name]) limited.set(ask[name].id, ask[name])
  for (const id of limited.keys()) keyOf(account, id)
  for (const share of keys.values()) {
    const key = limited.get(share.scope)
    if (!key && !isDirty(share)) continue
    const [limit, budget] = [limits.requestsPerMinute(key), limits.budgetNanos(key)]
    scopes.push({ share, limit, budget, isKey: true, asks: [] })
  }
  return scopes
}

/** For each limit of a key or a person: a function that converts the limit to a parameter of `admit`. */
const limits = {
  requestsPerMinute: limitOf,
  budgetNanos: (key: KeyScope | undefined): bigint | '' => key?.budgetNanos ?? '',
} satisfies { [Name in Exclude<keyof KeyScope, 'id'>]: (key: KeyScope | undefined) => number | bigint | '' }

/** The database counts in 32 bits, so a higher limit is replaced by the highest number of 32 bits. */
function limitOf(asked: { requestsPerMinute: number | undefined } | undefined): number | '' {
  return asked?.requestsPerMinute === undefined ? '' : Math.min(asked.requestsPerMinute, 2 ** 31 - 1)
}

/** The database's figures for an account, key or person. @property budget what is left of an account's own budget */
type BudgetFigures = {
  all: number
  credit: bigint
  free: bigint
  renewsMs: number | undefined
  budget: BudgetLeft | undefined
}

function readAnswer(
  text: string,
  accounts: readonly AccountShares[],
  scopes: readonly Scope[],
  asks: readonly OpenAsk[],
  sent: readonly bigint[],
  placeOf: ReadonlyMap<string, number>,
): { answers: DeskAnswer[]; nowMs: number } {
  const [judged = '', now = '', ...parts] = text.split(';')
  const nowMs = Number(now)
  const told = new Map<Share, BudgetFigures>()
  const written = new Map<Share, { heldNanos: bigint; taken: number }>()
  for (const [index, { share }] of scopes.entries()) {
    const [began = '', taken = '', all = '', credit = '', free = '', renews = '', left = '', spare = ''] =
      parts[index]!.split(',')
    share.windowMs = Number(began)
    share.taken = Number(taken)
    const figures = { heldNanos: sent[index]!, taken: share.taken }
    share.told = figures
    written.set(share, figures)
    const renewsMs = renews === '' ? undefined : Number(renews)
    const budget = left === '' ? undefined : { leftNanos: BigInt(left), freeNanos: BigInt(spare), renewsMs }
    told.set(share, { all: Number(all), credit: BigInt(credit), free: BigInt(free), renewsMs, budget })
  }
  for (const account of accounts) account.balanceNanos = told.get(account.own)!.credit
  const byId = new Map(accounts.map((account) => [account.own.scope, account]))
  const answers: DeskAnswer[] = []
  for (const [index, ask] of asks.entries()) {
    const verdict = verdictOf.get(judged[index]!)!
    const { own } = byId.get(ask.accountId)!
    const scopeOf = (scope: KeyScope | undefined) => scope && scopes[placeOf.get(scope.id)! - 1]!
    const [keyScope, personScope] = [scopeOf(ask.key), scopeOf(ask.person)]
    take(ask, verdict, { accountMs: own, keyMs: keyScope?.share, personMs: personScope?.share }, written)
    if (ask.isOver) continue
    ask.isOver = true
    const { all, credit, free, budget } = told.get(own)!
    const hasPlace = verdict === 'admitted' && ask.place === 'take'
    answers.push({
      id: ask.id,
      verdict,
      figures: {
        balanceNanos: credit,
        freeNanos: free,
        window: countOf(own, all, nowMs),
        budget,
        key: keyScope && tellKey(keyScope, told.get(keyScope.share)!, nowMs),
        person: personScope && tellKey(personScope, told.get(personScope.share)!, nowMs),
      },
      place: hasPlace
        ? { accountMs: own.windowMs, keyMs: keyScope?.share.windowMs, personMs: personScope?.share.windowMs }
        : undefined,
    })
  }
  return { answers, nowMs }
}

function tellKey(
  { share, limit, budget }: Scope,
  { all, credit, free, renewsMs }: BudgetFigures,
  nowMs: number,
): KeyFigures {
  return {
    window: limit === '' ? undefined : countOf(share, all, nowMs),
    budget: budget === '' ? undefined : { leftNanos: credit, freeNanos: free, renewsMs },
  }
}

/**
 * Updates this replica's figures after the verdict on a request. A request that has expired meanwhile still counts in
 * its rate window, but holds no credit.
 */
function take(
  { holdNanos, place, isOver }: OpenAsk,
  verdict: DeskVerdict,
  shares: Readonly<Record<keyof PlaceTaken, Share | undefined>>,
  written: ReadonlyMap<Share, { heldNanos: bigint }>,
): void {
  for (const name of ['accountMs', 'keyMs', 'personMs'] as const) {
    const share = shares[name]
    if (!share) continue
    if (verdict !== 'admitted') {
      if (place !== 'take') giveBack(share, place[name])
      continue
    }
    written.get(share)!.heldNanos += holdNanos
    if (!isOver) share.heldNanos += holdNanos
  }
}
