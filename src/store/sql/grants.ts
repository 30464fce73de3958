import type { ChangeScope, Facts } from '../../accounts/book-rules.ts'
import { readReturnReference } from '../../accounts/entries.ts'
import { type GrantBase, type GrantEntryKind, grantPrefix } from '../../accounts/grants.ts'
import { isSpending } from './budgeted.ts'
import type { Dialect, Put } from './dialect.ts'
import { lockAccount, readLastSeq, sliceMax } from './spends.ts'
import { ask, askOne, type Row, type StoreStep } from './step.ts'

/*
 * The spend of a monthly grant (ruling Y20) is a sum of entries after the grant's entry. Debits and negative credits
 * count, minus the credits that reverse these debits. A credit that reverses an earlier debit does not count, because
 * that debit did not spend the grant.
 */

/** Reads the last monthly grant of an account. If unspent grants lapse, also sums what was spent since this grant. */
export function* sumGrant(dialect: Dialect, accountId: string): StoreStep<GrantBase | undefined> {
  const last = (put: Put) =>
    `SELECT last_grant, grant_lapses FROM ${dialect.schema}.accounts WHERE id = ${put(accountId)}`
  const { last_grant: reference, grant_lapses: lapses } = ((yield* askOne(dialect, last)) ?? {}) as Row
  if (typeof reference !== 'string') return undefined
  const entry = (put: Put) => `SELECT e.seq, e.amount FROM ${dialect.creditEntry} = ${put(reference)}`
  const row = yield* askOne(dialect, entry)
  const seq = Number(row?.['seq'] ?? 0)
  const base = { reference, seq, amountNanos: (row?.['amount'] as bigint | undefined) ?? 0n }
  // The sum of what was spent since the grant is needed only if the grant lapses.
  const used = Number(lapses) ? yield* sumUsed(dialect, accountId, seq, seq) : { spentNanos: 0n, throughSeq: undefined }
  return { ...base, ...used }
}

/**
 * Locks an account, and reads its grants and lapses. The lock of heads (digests of all entries) is taken before the
 * account's lock. Posts take the two in the same order, so no deadlock is possible.
 */
export function* findGrants(
  dialect: Dialect,
  { accountId, base }: NonNullable<ChangeScope['grants']>,
): StoreStep<NonNullable<Facts['grants']>> {
  const { headLock } = dialect
  if (headLock) yield* ask(dialect, () => headLock.shared)
  yield* lockAccount(dialect, accountId)
  const [grants, lapses] = [
    yield* listReferences(dialect, 'grant', accountId),
    yield* listReferences(dialect, 'lapse', accountId),
  ]
  const taken = new Set([...grants, ...lapses])
  if (base?.throughSeq === undefined) return { taken, spentNanos: 0n }
  const tail = yield* sumUsed(dialect, accountId, base.seq, base.throughSeq)
  return { taken, spentNanos: base.spentNanos + tail.spentNanos }
}

/** Lists the references of an account's grants, or of its lapses. A lapse takes the unspent rest of a grant back. */
export function* listReferences(dialect: Dialect, kind: GrantEntryKind, accountId: string): StoreStep<string[]> {
  const prefix = grantPrefix(kind, accountId)
  // Strings are sorted by bytes, and `0` follows `/`. So these two bounds enclose all references with the prefix.
  const select = (put: Put) => `SELECT reference FROM ${dialect.credits}
    WHERE reference >= ${put(prefix)} AND reference < ${put(`${prefix.slice(0, -1)}0`)}`
  return (yield* ask(dialect, select)).map(({ reference }) => reference as string)
}

/**
 * Adds up the spend of a grant, slice by slice.
 * @param seq the number of the grant's entry
 * @param afterSeq only entries above this number count
 */
function* sumUsed(dialect: Dialect, accountId: string, seq: number, afterSeq: number) {
  const throughSeq = yield* readLastSeq(dialect, accountId)
  const lapse = grantPrefix('lapse', accountId)
  let spentNanos = 0n
  for (let after = afterSeq; after < throughSeq; after += sliceMax) {
    const from = (put: Put) => `FROM ${dialect.schema}.entries e WHERE e.account_id = ${put(accountId)}
      AND e.seq > ${put(after)} AND e.seq <= ${put(Math.min(throughSeq, after + sliceMax))}`
    const row = yield* askOne(
      dialect,
      (put) => `SELECT CAST(sum(CASE WHEN e.kind = 'debit' THEN e.amount
        WHEN e.amount < 0 AND substr(e.reference, 1, ${lapse.length}) <> ${put(lapse)} THEN -e.amount ELSE 0 END) AS bigint) AS spent
        ${from(put)}`,
    )
    const returns = yield* ask(
      dialect,
      (put) => `SELECT e.reference, e.amount ${from(put)} AND e.kind = 'credit' AND ${isSpending}`,
    )
    spentNanos += ((row?.['spent'] as bigint | null) ?? 0n) - (yield* sumReturns(dialect, seq, returns))
  }
  return { spentNanos, throughSeq }
}

/** The most debits in one statement. */
const debitsMax = 100

function* sumReturns(dialect: Dialect, seq: number, returns: readonly Row[]): StoreStep<bigint> {
  let sum = 0n
  for (let at = 0; at < returns.length; at += debitsMax) {
    const ids = returns.slice(at, at + debitsMax).map(({ reference }) => readReturnReference(reference as string)!)
    // A reversal counts only if its debit came after the grant. So the reversed debits are summed here, not the credits
    // that reverse them.
    const row = yield* askOne(
      dialect,
      (put) => `SELECT CAST(sum(e.amount) AS bigint) AS sum FROM ${dialect.schema}.entries e
        WHERE (${ids.map((id) => dialect.isOfRequest(put, id)).join(' OR ')}) AND e.seq > ${put(seq)}`,
    )
    sum += (row?.['sum'] as bigint | null) ?? 0n
  }
  return sum
}
