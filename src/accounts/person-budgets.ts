import { type BookWrite, beginSpend, beginsAnew, type Facts, moveSpend } from './book-rules.ts'
import type { BudgetPeriod, TimeSpan } from './budget.ts'
import type { Calendar } from './calendar.ts'
import { personBounds } from './key-bounds.ts'
import type { PersonRow } from './persons.ts'

/*
 * Counts the spending of people when their bounds, accounts or identities change (ruling Y20).
 */

/**
 * The amounts that people spent in one account, by the person ids in entries. They are summed before budgets change.
 */
export type PersonSums = TimeSpan & { spent: ReadonlyMap<string, bigint>; throughSeq: number }

/** A budget whose spending must be summed from entries. */
export type UncountedBudget = { accountId: string; per: BudgetPeriod | undefined }

/**
 * The result of a change that wrote nothing, because it lacks the sums for these budgets. The caller reads the sums and
 * makes the change again. Summing within the change would keep accounts locked for too long.
 */
export class Uncounted {
  readonly budgets: readonly UncountedBudget[]

  constructor(budgets: readonly UncountedBudget[]) {
    this.budgets = budgets
  }
}

/** Returns the sums of entries for a budget's account and period. Undefined if the caller has not read them yet. */
type SumsOf = (budget: UncountedBudget) => PersonSums | undefined

/** Parts for counting the spending of people. `calendar`, in the reporting zone, decides when budgets begin. */
export type PersonCounting = { calendar: Calendar; sumsOf: SumsOf }

/** Makes the writes for a new person. No entry names the person yet, so the spending begins at 0. */
export function insertPerson(person: PersonRow, calendar: Calendar, facts: Facts): BookWrite[] {
  const { accountId, bounds, id } = person
  const counts = bounds.budget ? beginSpend(accountId!, id, bounds.budget, calendar, facts) : []
  return [{ kind: 'insert_person', person }, ...counts]
}

/** Returns the ids by which entries name a person. */
export function identitiesOf({ persons }: Facts, { id }: PersonRow): string[] {
  return [id, ...persons.filter(({ linkedId }) => linkedId === id).map((one) => one.id)]
}

/**
 * Makes the writes with which one change of a person begins or ends the counting of their spending, or passes it to
 * another account. A budget counts only those entries of its person that are in the person's account.
 */
export class BudgetCount {
  readonly #facts: Facts
  readonly #counting: PersonCounting | undefined
  readonly #missing: UncountedBudget[] = []

  /** @param counting may be left out if only `end` is called */
  constructor(facts: Facts, counting?: PersonCounting) {
    this.#facts = facts
    this.#counting = counting
  }

  get isComplete(): boolean {
    return this.#missing.length === 0
  }

  ask(): { writes: []; result: Uncounted } {
    return { writes: [], result: new Uncounted(this.#missing) }
  }

  /**
   * Makes the writes for the limits and the spend of a changed person.
   * @param ids all ids of the person that entries can have after the change
   */
  move(after: PersonRow, before: PersonRow, ids: readonly string[]): BookWrite[] {
    const accountId = (after.accountId ?? before.accountId)!
    const { budget } = after.bounds
    if (!personBounds.isBounded(after.bounds) && !personBounds.isBounded(before.bounds)) return []
    const known = after.accountId === before.accountId ? before : { ...before, spend: undefined }
    const set: BookWrite = { kind: 'set_person_bounds', accountId, personId: after.id, bounds: after.bounds }
    const { calendar, sumsOf } = this.#counting!
    const sums = budget && beginsAnew(known, budget) ? sumsOf({ accountId, per: budget.per }) : undefined
    if (budget && beginsAnew(known, budget) && !sums) this.#missing.push({ accountId, per: budget.per })
    const spentNanos = ids.reduce((sum, id) => sum + (sums?.spent.get(id) ?? 0n), 0n)
    const moment = { calendar, nowMs: this.#facts.nowMs, base: sums && { ...sums, spentNanos } }
    return [set, ...moveSpend({ accountId, scope: after.id }, after, known, moment)]
  }

  /** Removes the bounds and the counted spend of a person who was erased or was linked to another person. */
  end({ id: personId, accountId, bounds }: PersonRow): BookWrite[] {
    if (!personBounds.isBounded(bounds)) return []
    const set: BookWrite = { kind: 'set_person_bounds', accountId: accountId!, personId, bounds: personBounds.none }
    return bounds.budget ? [set, { kind: 'clear_spend', accountId: accountId!, scope: personId }] : [set]
  }

  /**
   * Adds a lock in front of writes that change budgets. The lock covers every account in which these budgets count, so
   * that two changes cannot deadlock. @returns the lock and the writes
   */
  locking(writes: readonly BookWrite[]): BookWrite[] {
    const counted = writes.filter(isOfBudget)
    if (counted.length === 0) return [...writes]
    const homes = new Map(this.#facts.persons.map(({ id, accountId }) => [id, accountId]))
    const ids = counted.flatMap((write) => {
      const home = homes.get(write.kind === 'set_person_bounds' ? write.personId : write.scope)
      return home === undefined ? [write.accountId] : [write.accountId, home]
    })
    return [{ kind: 'lock_accounts', ids }, ...writes]
  }
}

type BudgetWrite = Extract<BookWrite, { kind: 'set_person_bounds' | 'set_spend' | 'clear_spend' }>

function isOfBudget(write: BookWrite): write is BudgetWrite {
  return write.kind === 'set_person_bounds' || write.kind === 'set_spend' || write.kind === 'clear_spend'
}
