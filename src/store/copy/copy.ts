import { type Moved, StoreError, sayMoved } from '../files/store-error.ts'
import {
  changedRows,
  countOf,
  findDifferences,
  missingRows,
  rangesBehind,
  type Sums,
  sliceRanges,
  Tally,
} from './compare.ts'
import {
  type ChainEnd,
  type CopyEnd,
  type CopySource,
  type CopyTarget,
  copiedNames,
  copiedRegisters,
  type EntryRange,
  type HeldSource,
  type Registers,
} from './end.ts'

/** Receives the progress of a copy, for people. */
export type CopyListener = {
  /** Called with a sentence about the progress, now and then during long work. */
  progress(words: string): void
  /** Called with a sentence about something that a person must do or know. */
  note(text: string): void
  /** Waits `ms` milliseconds. */
  pause(ms: number): Promise<void>
  /** Returns monotonic milliseconds. */
  clockMs(): number
}

export type CopyReport = {
  /** The number of entries that this run has added. */
  copied: number
  /** The sums of the source and of the target, which are equal. */
  sums: Sums
  accounts: number
  keys: number
  prices: number
  balancesNanos: bigint
  headMs: number
  /** How long no server can run, in ms: from the end of the source's servers until the target is ready. */
  pauseMs: number
}

/** The most rows of any table in one statement. */
const sliceMax = 2_000

/** The times between two checks whether the servers have stopped, and between two copies of new entries, in ms. */
const [lookMs, catchUpMs] = [250, 2_000]

/**
 * Moves a store's content:
 *
 * 1. copies while servers still use the source, and waits until they have stopped;
 * 2. copies the last entries, verifies that both stores are equal, and closes the source.
 *
 * The copy may be interrupted and repeated at any time before the end of step 2.
 * @throws StoreError
 */
export async function copyStore(source: CopySource, target: CopyTarget, listener: CopyListener): Promise<CopyReport> {
  await refuseMoved(source, target)
  await refuseOthers(source, target)
  await refuseArchived(source)
  await refuseArchived(target)
  await target.begin((await source.readOldestMs()) ?? Date.now())
  await refuseItself(source, target)
  const copy = new Copy(source, target, listener)
  await copy.catchUp()
  await target.settle()
  await copy.prove()
  await copy.refuseStrays()
  let told = ''
  for (let lastMs = listener.clockMs(); ; ) {
    let startMs = 0
    const outcome = await source.hold(async (held) => {
      startMs = listener.clockMs()
      // Another copy may have moved the source meanwhile, and an operator may have detached a month.
      await refuseMoved(source, target)
      await refuseArchived(source)
      return copy.end(held)
    })
    if ('result' in outcome) {
      await target.finish()
      return { ...outcome.result, pauseMs: Math.round(listener.clockMs() - startMs) }
    }
    if (outcome.servers !== told)
      listener.note(
        `stop ${outcome.servers}: all but the last entries are copied, and the pause begins when that is done`,
      )
    told = outcome.servers
    await listener.pause(lookMs)
    if (listener.clockMs() - lastMs < catchUpMs) continue
    await copy.catchUp()
    await copy.prove()
    lastMs = listener.clockMs()
  }
}

/** How far a copy has come, and how much of it has been verified. */
class Copy {
  readonly #source: CopySource
  readonly #target: CopyTarget
  readonly #listener: CopyListener
  readonly #tallies = { source: new Tally(), target: new Tally() }
  /** For each account, the number of its last verified entry. */
  readonly #proved = new Map<string, number>()
  #come: Map<string, number> | undefined
  #copied = 0

  constructor(source: CopySource, target: CopyTarget, listener: CopyListener) {
    this.#source = source
    this.#target = target
    this.#listener = listener
  }

  /** Copies the entries that the source has by now. @returns all other tables of both stores, read before the copy */
  async catchUp(): Promise<{ registers: Registers; there: Registers }> {
    this.#come ??= new Map((await this.#target.readTails()).map(({ accountId, seq }) => [accountId, seq]))
    const tails = await this.#source.readTails()
    // Registers are read after the tails (each account's last entry), so they have all rows that entries refer to.
    const registers = await this.#source.readRegisters()
    const there = await this.#target.readRegisters()
    for (const rows of slices(missingRows('accounts', registers.accounts, there.accounts)))
      await this.#target.addAccounts(rows)
    for (const rows of slices(missingRows('prices', registers.prices, there.prices))) await this.#target.addPrices(rows)
    const ranges = rangesBehind(tails, this.#come)
    // The next slice is read while the previous slice is written.
    let writing: Promise<void> = Promise.resolve()
    await this.#eachSlice('copied', ranges, async (slice) => {
      const rows = await this.#source.readEntries(slice)
      await writing
      writing = this.#target.addEntries(rows)
      writing.catch(() => {})
      this.#copied += rows.length
    })
    await writing
    for (const { accountId, upto } of ranges) this.#come.set(accountId, upto)
    return { registers, there }
  }

  /** Reads the entries that are not verified yet from source and target, and adds them to the sums of their store. */
  async prove(): Promise<void> {
    const tails = Array.from(this.#come!, ([accountId, seq]) => ({ accountId, seq }) as ChainEnd)
    const ranges = rangesBehind(tails, this.#proved)
    await this.#eachSlice('compared', ranges, async (slice) => {
      const [here, there] = await Promise.all([this.#source.readEntries(slice), this.#target.readEntries(slice)])
      this.#tallies.source.add(here)
      this.#tallies.target.add(there)
    })
    for (const { accountId, upto } of ranges) this.#proved.set(accountId, upto)
  }

  /**
   * Refuses stores in which an entry has a number outside its account's range. Entries are copied by ranges of numbers,
   * so such an entry would be missed. This reads both stores whole, so it runs before the servers stop.
   * @throws StoreError
   */
  async refuseStrays(): Promise<void> {
    const [here, there] = [await this.#source.count(), await this.#target.count()]
    const { credits } = this.#tallies.target.sums
    this.#refuse([
      ...(here.entries === here.numbered ? [] : [`${here.entries} entries, and ${here.numbered} in accounts there`]),
      ...(there.entries === there.numbered ? [] : [`${there.entries} entries, and ${there.numbered} in accounts here`]),
      ...(there.references === credits ? [] : [`${there.references} references of ${credits} credits`]),
    ])
  }

  /** Completes the copy. From now on nobody may write to the source. @throws StoreError if source and target differ */
  async end(held: HeldSource): Promise<Omit<CopyReport, 'pauseMs'>> {
    const { spooled } = held
    if (spooled) this.#listener.note(spooled)
    const headMs = await held.fixMoment()
    const { registers, there } = await this.catchUp()
    const changed: Registers = { ...registers, headMs }
    for (const name of copiedNames)
      if (copiedRegisters[name] !== 'replaced') changed[name] = changedRows(name, registers[name], there[name])
    await this.#target.write(changed)
    const [zone, zoneThere] = [await this.#source.readZone(), await this.#target.readZone()]
    const isThere = zone?.timeZone === zoneThere?.timeZone && zone?.weekStarts === zoneThere?.weekStarts
    if (zone && !isThere) await this.#target.setZone(zone)
    await this.prove()
    const tails = await this.#source.readTails()
    this.#refuse([
      ...findDifferences(registers, await this.#target.readRegisters()),
      ...this.#compareSums(),
      ...compareTails(tails, await this.#target.readTails()),
    ])
    await held.markMoved(this.#target.shown)
    return {
      copied: this.#copied,
      sums: this.#tallies.source.sums,
      accounts: registers.accounts.length,
      keys: registers.keys.length,
      prices: registers.prices.length,
      balancesNanos: tails.reduce((sum, { balanceNanos }) => sum + balanceNanos, 0n),
      headMs,
    }
  }

  #compareSums(): string[] {
    const [one, other] = [this.#tallies.source.sums, this.#tallies.target.sums]
    return (Object.keys(one) as (keyof Sums)[])
      .filter((name) => one[name] !== other[name])
      .map((name) => `${name}: ${one[name]} and ${other[name]}`)
  }

  #refuse(differences: readonly string[]): void {
    if (differences.length === 0) return
    const [here, there] = [this.#source.shown, this.#target.shown]
    throw new StoreError(
      `${there} is not equal to ${here}, which stays as it was: ${differences.join('; ')}. Copy into an empty store`,
    )
  }

  async #eachSlice(
    done: string,
    ranges: readonly EntryRange[],
    work: (slice: readonly EntryRange[]) => Promise<void>,
  ): Promise<void> {
    const all = countOf(ranges)
    let count = 0
    for (const slice of sliceRanges(ranges, sliceMax)) {
      await work(slice)
      count += countOf(slice)
      this.#listener.progress(`${done} ${count} of ${all} entries`)
    }
  }
}

/**
 * Checks whether a source was moved, before a target is created.
 * @returns undefined if it was not moved
 * @throws StoreError if it was moved to another place
 */
export async function refuseMovedElsewhere(source: CopySource, target: string): Promise<Moved | undefined> {
  const moved = await source.readMoved()
  if (moved && moved.to !== target) throw new StoreError(sayMoved(source.shown, moved))
  return moved
}

/** Refuses a moved source, unless its move into this target was interrupted in the last step. */
async function refuseMoved(source: CopySource, target: CopyTarget): Promise<void> {
  const moved = await refuseMovedElsewhere(source, target.shown)
  if (moved && (await target.readMoved())?.to !== '') throw new StoreError(sayMoved(source.shown, moved))
}

/** Refuses a store with detached months, whose entries are in files, because a copy must have all entries. */
async function refuseArchived({ readAwayMonth, shown }: CopyEnd): Promise<void> {
  const month = await readAwayMonth()
  if (month !== undefined)
    throw new StoreError(
      `${shown} lacks entries of ${month}, which were detached: bring back all months with triwire ledger archive attach, then copy`,
    )
}

/**
 * Refuses a target with entries or accounts that the source lacks. Entries that an earlier try has copied are accepted.
 */
async function refuseOthers(source: CopySource, target: CopyTarget): Promise<void> {
  const refusal = new StoreError(
    `${target.shown} has other accounts or entries than ${source.shown}: name an empty store, or one that was copied from or to this one`,
  )
  const ends = new Map((await source.readTails()).map((tail) => [tail.accountId, tail]))
  const begun = await target.readTails()
  if (begun.some(({ accountId, seq }) => (ends.get(accountId)?.seq ?? -1) < seq)) throw refusal
  const last = begun.filter(({ seq }) => seq > 0)
  for (const tails of slices(last)) {
    const rows = await source.readEntries(tails.map(({ accountId, seq }) => ({ accountId, after: seq - 1, upto: seq })))
    // The digest of an entry covers all earlier entries of its account, so comparing the last digests is enough.
    if (tails.some(({ digest }, at) => rows[at]?.['digest'] !== digest)) throw refusal
  }
}

/**
 * Refuses a target that is the source under another name. The target was just marked as incomplete. If the source has
 * the mark now, both are the same store.
 */
async function refuseItself(source: CopySource, target: CopyTarget): Promise<void> {
  if ((await source.readMoved())?.to !== '') return
  await target.finish()
  throw new StoreError(`${source.shown} and ${target.shown} are the same store: name another one with --to`)
}

/** Compares the last entry of each account in two stores. Returns a sentence if any entries differ. */
function compareTails(one: readonly ChainEnd[], other: readonly ChainEnd[]): string[] {
  const ends = new Set(other.map(textOf))
  const count = one.filter((tail) => !ends.has(textOf(tail))).length + Math.abs(one.length - other.length)
  return count === 0 ? [] : [`${count} accounts end otherwise`]
}

function textOf({ accountId, seq, balanceNanos, digest }: ChainEnd): string {
  return `${accountId} ${seq} ${balanceNanos} ${digest}`
}

function* slices<T>(rows: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < rows.length; at += sliceMax) yield rows.slice(at, at + sliceMax)
}
