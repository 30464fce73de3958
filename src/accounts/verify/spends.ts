import type { Archive, SealedSums } from '../archive.ts'
import type { Spend } from '../budget.ts'
import type { VerifiedEntry } from '../entry-row.ts'
import { kindOfScope } from '../warnings.ts'

/**
 * The recorded spending of an account, a person, or a key with its rotations (ruling R15). `scope` is the id under
 * which this spending is counted.
 */
export type SpendRow = Spend & {
  scope: string
  /** The account itself, or the account of the key or person. Undefined if the key or person no longer exists. */
  accountId: string | undefined
  keyIds: readonly string[]
  /** The ids by which entries name the person (ruling Y20). */
  personIds: readonly string[]
}

/**
 * The recorded spending, read again after all entries were verified.
 * @property tailNanos the amount that entries newer than the verified ones have spent in the window
 */
export type SpendEnd = Spend & { scope: string; tailNanos: bigint }

/**
 * Checks that the recorded spending of each budget is the sum of the entries in its window. Budgets belong to keys,
 * accounts and people.
 */
export function createSpendCheck(rows: readonly SpendRow[], findings: string[]) {
  const sums = new Map(rows.map((row) => [row.scope, { row, nanos: 0n, lastSeq: 0, isPartial: false } as Sum]))
  const byKey = new Map(rows.flatMap((row) => row.keyIds.map((id) => [id, sums.get(row.scope)!])))
  const byPerson = new Map(rows.flatMap((row) => row.personIds.map((id) => [id, sums.get(row.scope)!])))
  const byAccount = new Map(rows.filter(isOfAccount).map((row) => [row.scope, sums.get(row.scope)!]))
  return { check, lastSeqOf: (scope: string) => sums.get(scope)?.lastSeq ?? 0, addAway, end }

  function check(reading: VerifiedEntry): void {
    const { entry, row } = reading
    if (byKey.size > 0) add(byKey.get(row['key_id'] as string), reading)
    const ofPerson = byPerson.size > 0 ? byPerson.get(row['person'] as string) : undefined
    if (ofPerson?.row.accountId === entry.accountId) add(ofPerson, reading)
    if (byAccount.size > 0 && row['usage_source'] !== null) add(byAccount.get(entry.accountId), reading)
  }

  function add(sum: Sum | undefined, { entry, shiftedMs = entry.postedMs }: VerifiedEntry): void {
    if (!sum) return
    if (entry.accountId === sum.row.accountId) sum.lastSeq = entry.seq
    const { fromMs, untilMs } = sum.row
    if (shiftedMs < fromMs || shiftedMs >= untilMs) return
    sum.nanos += entry.kind === 'debit' ? entry.amountNanos : -entry.amountNanos
  }

  /**
   * Adds the sums of entries that are only in the file of an archive. If only a part of a budget's window is in the
   * archive, the budget is not compared until the entries are back in the store.
   */
  function addAway(accountId: string, { untilMs }: Archive, sealed: readonly SealedSums[]): void {
    for (const { keyId, person, sums } of sealed)
      for (const sum of new Set([byKey.get(keyId), byPerson.get(person), byAccount.get(accountId)])) {
        if (!sum || accountId !== sum.row.accountId || sum.row.fromMs >= untilMs) continue
        if (sum.row.fromMs > 0 || sum.row.untilMs < untilMs) sum.isPartial = true
        else sum.nanos += sums.cost
      }
  }

  /** Compares the sums of entries with the rows as they are now (`ends`). A row whose window has changed is skipped. */
  function end(ends: Iterable<SpendEnd>): void {
    for (const { scope, fromMs, untilMs, spentNanos, tailNanos } of ends) {
      const sum = sums.get(scope)
      if (!sum || sum.isPartial || sum.row.fromMs !== fromMs || sum.row.untilMs !== untilMs) continue
      const nanos = sum.nanos + tailNanos
      if (spentNanos !== nanos)
        findings.push(`${sayScope(scope)}: has spent ${spentNanos} of its budget, its entries sum to ${nanos}`)
    }
  }
}

/** The sum of the entries in the window of `row`. @property isPartial whether some entries are in an archive's file */
type Sum = { row: SpendRow; nanos: bigint; lastSeq: number; isPartial: boolean }

function isOfAccount({ scope, accountId }: SpendRow): boolean {
  return scope === accountId
}

function sayScope(scope: string): string {
  return `${kindOfScope(scope)} ${scope}`
}

/** Finds budgets whose spending is not recorded, and recorded spending without a budget. */
export function* findUncounted(budgeted: Iterable<string>, counted: ReadonlySet<string>): Iterable<string> {
  const rest = new Set(counted)
  for (const scope of new Set(budgeted)) {
    if (!rest.delete(scope)) yield `${sayScope(scope)}: has a budget, and what it spends is not counted`
  }
  for (const scope of rest) yield `${sayScope(scope)}: what it spends is counted, and it has no budget`
}
