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
  type CopySource,
  type CopyTarget,
  copiedNames,
  copiedRegisters,
  type EntryRange,
  type HeldSource,
  type Registers,
} from './end.ts'

/** The progress of a copy, for people. */
export type CopyListener = {
  /** Long work, now and then. */
  progress(words: string): void
  /** A sentence about something that a person is to do or to know. */
  note(text: string): void
  /** Waits so long, in ms. */
  pause(ms: number): Promise<void>
  /** Monotonic milliseconds. */
  clockMs(): number
}

export type CopyReport = {
  /** Entries that this copy has added. */
  copied: number
  /** Of the source and of the target, which are equal. */
  sums: Sums
  accounts: number
  keys: number
  prices: number
  balancesNanos: bigint
  headMs: number
  /** From the moment the source's servers were gone to the moment the target may serve. */
  pauseMs: number
}

/** Entries in one statement, and as many rows of anything else. */
const sliceMax = 2_000

/** How often it is looked whether the servers have gone, and how often what they add is copied meanwhile. */
const [lookMs, catchUpMs] = [250, 2_000]

/**
 * Moves a store's content. It copies while servers serve from the source, and waits until they are gone. Then it copies what
 * came last, proves that both are equal, and closes the source. Until then it may be broken off at any time and repeated.
 * @throws StoreError
 */
export async function copyStore(source: CopySource, target: CopyTarget, listener: CopyListener): Promise<CopyReport> {
  await refuseMoved(source, target)
  await refuseOthers(source, target)
  await refuseArchived(source)
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
    const outcome = await source.hold((held) => {
      startMs = listener.clockMs()
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
  /** By account the number of the last entry. */
  readonly #proved = new Map<string, number>()
  #come: Map<string, number> | undefined
  #copied = 0

  constructor(source: CopySource, target: CopyTarget, listener: CopyListener) {
    this.#source = source
    this.#target = target
    this.#listener = listener
  }

  /** Copies what is in the source by now. @returns what both had beside their entries before it. */
  async catchUp(): Promise<{ registers: Registers; there: Registers }> {
    this.#come ??= new Map((await this.#target.readTails()).map(({ accountId, seq }) => [accountId, seq]))
    const tails = await this.#source.readTails()
    // Read after the tails, so that they have everything that the entries name.
    const registers = await this.#source.readRegisters()
    const there = await this.#target.readRegisters()
    for (const rows of slices(missingRows('accounts', registers.accounts, there.accounts)))
      await this.#target.addAccounts(rows)
    for (const rows of slices(missingRows('prices', registers.prices, there.prices))) await this.#target.addPrices(rows)
    const ranges = rangesBehind(tails, this.#come)
    // While the one is being written the next is read.
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

  /** Reads what was copied from both sides, and adds it up. */
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

  /** Entries that no account's numbers reach would be compared by nobody. It reads all of both, so before the pause. */
  async refuseStrays(): Promise<void> {
    const [here, there] = [await this.#source.count(), await this.#target.count()]
    const { credits } = this.#tallies.target.sums
    this.#refuse([
      ...(here.entries === here.numbered ? [] : [`${here.entries} entries, and ${here.numbered} in accounts there`]),
      ...(there.entries === there.numbered ? [] : [`${there.entries} entries, and ${there.numbered} in accounts here`]),
      ...(there.references === credits ? [] : [`${there.references} references of ${credits} credits`]),
    ])
  }

  /** Nobody writes to the source any more. @throws StoreError if both are not equal. */
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
 * To be asked before a target is made.
 * @returns undefined for a source that was not moved. @throws StoreError if it was moved to another place.
 */
export async function refuseMovedElsewhere(source: CopySource, target: string): Promise<Moved | undefined> {
  const moved = await source.readMoved()
  if (moved && moved.to !== target) throw new StoreError(sayMoved(source.shown, moved))
  return moved
}

/** A source that was moved is copied again only to bring to its end what was broken off at the very last. */
async function refuseMoved(source: CopySource, target: CopyTarget): Promise<void> {
  const moved = await refuseMovedElsewhere(source, target.shown)
  if (moved && (await target.readMoved())?.to !== '') throw new StoreError(sayMoved(source.shown, moved))
}

/** A copy has all entries. */
async function refuseArchived(source: CopySource): Promise<void> {
  const month = await source.readAwayMonth()
  if (month !== undefined)
    throw new StoreError(
      `${source.shown} lacks entries of ${month}, which were detached: bring back all months with triwire ledger archive attach, then copy`,
    )
}

/** The target must have the beginning of the source's content: from an earlier try, or because the source came from it. */
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
    // Each digest covers all that was before it.
    if (tails.some(({ digest }, at) => rows[at]?.['digest'] !== digest)) throw refusal
  }
}

/** Refuses to copy a store onto itself, since one store may have several names. */
async function refuseItself(source: CopySource, target: CopyTarget): Promise<void> {
  if ((await source.readMoved())?.to !== '') return
  await target.finish()
  throw new StoreError(`${source.shown} and ${target.shown} are the same store: name another one with --to`)
}

/** Every account's end. */
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
