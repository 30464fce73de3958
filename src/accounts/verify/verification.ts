import { type Archive, type ArchivedEntry, findAway } from '../archive.ts'
import { formatHead, HeadHash } from '../chain.ts'
import { createCorrectionCheck, floorMsOf } from '../corrections.ts'
import type { Audited, VerifyOptions } from '../entries.ts'
import type { VerifiedEntry } from '../entry-row.ts'
import { createArchiveCheck, type RecordedArchive, type SealOfAccount } from './archives.ts'
import { type BillFacts, createBillCheck } from './bills.ts'
import { type AccountEnd, createChainCheck } from './chain.ts'
import { createLogCheck } from './log.ts'
import { createSpendCheck, type SpendEnd, type SpendRow } from './spends.ts'

/**
 * Recomputes every sum and every digest of a ledger. It is independent of the store, which passes it each entry once.
 * Entries come account by account in the byte order of the ids, the oldest first. docs/ledger.md explains how each kind
 * of forgery is found.
 * @param facts `entries`: the number of entries, for progress; `correctedMs`: when times were corrected; `archives`:
 *   all archives of the store
 * @param findings earlier findings; new ones are added to the list
 * @param momentMs the moment of the head (digest of all entries) to make; without it, no head is made
 */
export function createVerification(
  options: VerifyOptions,
  facts: BillFacts & {
    spends: readonly SpendRow[]
    entries: number
    correctedMs: Iterable<number>
    archives?: readonly Archive[]
  },
  findings: string[],
  momentMs?: number,
) {
  const { against, progress } = options
  let checked = 0
  const heads = [momentMs, against?.momentMs].map((ms) => (ms === undefined ? undefined : new HeadHash(ms)))
  // The given head (`against`) may be older than a correction. Its time cannot show that, because the clock may have
  // been ahead. So for each correction, a head that ends before the correction is computed too.
  for (const cutMs of new Set(facts.correctedMs))
    if (against && cutMs <= against.momentMs) heads.push(new HeadHash(against.momentMs, cutMs))
  const chain = createChainCheck(findings)
  const bills = createBillCheck(facts, options, findings)
  const log = options.log && createLogCheck(options.log, findings)
  const corrections = createCorrectionCheck(findings)
  const spends = createSpendCheck(facts.spends, findings)
  const archives = createArchiveCheck(facts.archives ?? [], chain, findings, pass)
  return {
    ...{ check, lastSeqOf: spends.lastSeqOf, listUnread, noteAway, end },
    ...{ isRead: archives.isRead, checkIndex: archives.checkIndex },
  }

  /**
   * Adds a sealed row to the sums and to the heads (digests of all entries). The row stands for entries that are only
   * in the file of an archive.
   */
  function pass({ seal, sums }: SealOfAccount, archive: Archive): void {
    spends.addAway(seal.accountId, archive, sums)
    for (const head of heads) head?.note(seal.accountId, seal.postedMs, seal.lastDigest)
  }

  /**
   * Lists the requests whose debits were not among the entries read. The log names these requests, or an entry that
   * gives their debit back. Such a debit may be archived.
   */
  function listUnread(): string[] {
    return [...new Set([...bills.listUnpaired(), ...(log?.listOpen() ?? [])])]
  }

  function noteAway(requestId: string, { accountId, amountNanos }: ArchivedEntry): void {
    bills.pair(requestId, accountId, amountNanos)
    log?.checkAway(requestId, accountId, amountNanos)
  }

  function check(reading: VerifiedEntry): void {
    const { accountId, postedMs, digest } = reading.entry
    const floorMs = floorMsOf(reading.entry)
    chain.check(reading)
    bills.check(reading)
    spends.check(reading)
    log?.check(reading, bills.isReturned(reading.entry))
    corrections.check(reading.entry, reading.shiftedMs)
    for (const head of heads) head?.note(accountId, postedMs, digest, floorMs === postedMs ? undefined : floorMs)
    if (++checked % shownEvery === 0) progress?.(sayChecked(checked, facts.entries))
  }

  /**
   * Ends the verification and returns its result.
   * @param accounts the state of each account when the last of its entries was read
   * @param spent the present spending of keys
   * @param nowMs the store's time. An entry with a later time is a finding (ruling Y15)
   * @param recorded see `createArchiveCheck`
   */
  function end(
    accounts: Iterable<AccountEnd>,
    spent: Iterable<SpendEnd>,
    nowMs: number,
    recorded: ReadonlyMap<string, RecordedArchive> = new Map(),
  ): Audited {
    archives.end(recorded)
    chain.end(accounts, nowMs)
    bills.end()
    corrections.end()
    spends.end(spent)
    log?.end()
    const [head, ...thens] = heads.map((head) => head?.end())
    if (against && !thens.some((then) => then?.hash === against.hash)) {
      const away = findAway(facts.archives ?? [], 0, against.momentMs).filter(
        ({ untilMs }) => against.momentMs < untilMs,
      )
      const why = away[0]
        ? `it is of a time in ${away[0].month}, which is away: attach that month, and verify again`
        : 'what it covered was changed, or is gone'
      findings.push(`head of ${new Date(against.momentMs).toISOString()}: ${why}`)
    }
    return { findings, head: head && !findings.length ? formatHead(head) : undefined }
  }
}

/** The number of entries between two progress reports. Checking so many entries takes some tenths of a second. */
const shownEvery = 5_000

/**
 * Formats the progress. Entries that are posted meanwhile are checked too, so the checked number may exceed the initial
 * total.
 */
function sayChecked(checked: number, entries: number): string {
  const percent = Math.min(100, Math.floor((100 * checked) / entries))
  return `verifying: ${checked} of ${Math.max(entries, checked)} entries (${percent} %)`
}
