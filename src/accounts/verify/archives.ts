import {
  type Archive,
  type ArchivedEntry,
  DigestSum,
  digestArchive,
  indexText,
  isAway,
  type Seal,
  type SealedSums,
  sealText,
  sumsText,
} from '../archive.ts'
import type { createChainCheck } from './chain.ts'

/** The last record of the audit trail about an archive. */
export type RecordedArchive = { digest: string; isDetached: boolean }

/** The rows that an archive leaves in the store for an account: the sealed row, and the sums by key and person. */
export type SealOfAccount = { seal: Seal; sums: readonly SealedSums[] }

/**
 * Checks archives of closed months. An archive leaves a sealed row in the store for each account. The sealed rows must
 * be unchanged and continue the chains of their accounts. Entries that are away (only in the archive's file) must not
 * be in the store. @param onPassed called for each sealed row whose entries are away, in the order of the entries
 */
export function createArchiveCheck(
  archives: readonly Archive[],
  chain: ReturnType<typeof createChainCheck>,
  findings: string[],
  onPassed: (of: SealOfAccount, archive: Archive) => void,
) {
  const months = new Map(
    archives
      .filter(({ state }) => state !== 'sealing')
      .map((archive) => [archive.month, { archive, seals: new DigestSum(), index: new DigestSum() }]),
  )
  let account: { id: string; pending: SealOfAccount[] } = { id: '', pending: [] }
  return { isRead, checkIndex, end }

  /**
   * Whether the verification must read an entry in the store. Call this for every entry, account by account, the oldest
   * first.
   * @param sealsOf returns all sealed rows of an account, the oldest first
   * @returns false if an archive's file has the entry, so that the store may lack it
   */
  function isRead(accountId: string, seq: number, sealsOf: (accountId: string) => readonly SealOfAccount[]): boolean {
    if (months.size === 0) return true
    if (account.id !== accountId) {
      finish()
      account = { id: accountId, pending: sealsOf(accountId).filter(note) }
    }
    const { pending } = account
    while (pending[0] && pending[0].seal.toSeq < seq) pass(pending.shift()!)
    const seal = pending[0]?.seal
    if (!seal || seal.fromSeq > seq) return true
    const { archive } = months.get(seal.month)!
    if (archive.state === 'away')
      findings.push(`account ${accountId}, entry ${seq}: is here, and ${seal.month} is detached`)
    return !isAway(archive)
  }

  /** Adds a sealed row to the digest of its archive. @returns false if its archive is missing or `sealing` */
  function note({ seal, sums }: SealOfAccount): boolean {
    const month = months.get(seal.month)
    if (!month) {
      if (!archives.some(({ month }) => month === seal.month))
        findings.push(`account ${seal.accountId}: has a sealed row of ${seal.month}, of which there is no archive`)
      return false
    }
    month.seals.add(sealText(seal))
    for (const one of sums) month.seals.add(sumsText(seal.accountId, seal.month, one))
    return true
  }

  function pass(of: SealOfAccount): void {
    const { accountId, month, fromSeq, toSeq, creditedNanos, debitedNanos, balanceNanos, lastDigest, postedMs } =
      of.seal
    const find = (text: string) => findings.push(`account ${accountId}, sealed row of ${month}: ${text}`)
    const { archive } = months.get(month)!
    const last = chain.lastOf(accountId)
    if (!isAway(archive)) {
      if (last.digest !== lastDigest || last.balanceNanos !== balanceNanos || last.seq !== toSeq)
        find('is not what the entries end with')
      return
    }
    if (fromSeq !== last.seq + 1) find(`follows entry ${last.seq}`)
    const due = last.balanceNanos + creditedNanos - debitedNanos
    if (balanceNanos !== due) find(`balance after it is ${balanceNanos}, should be ${due}`)
    chain.goOn(accountId, { seq: toSeq, balanceNanos, postedMs, digest: lastDigest })
    onPassed(of, archive)
  }

  function finish(): void {
    for (const { seal } of account.pending)
      findings.push(`account ${seal.accountId}: has a sealed row of ${seal.month}, and no entry after it`)
    account = { id: '', pending: [] }
  }

  function checkIndex(entry: ArchivedEntry): void {
    months.get(entry.month)?.index.add(indexText(entry))
  }

  /**
   * @param recorded the records of the audit trail, by month. In a copied store, a month that was attached again has a
   *   record but no archive
   */
  function end(recorded: ReadonlyMap<string, RecordedArchive>): void {
    finish()
    let previous: string | null = null
    for (const { archive, seals, index } of months.values()) {
      const { month, sealsDigest, indexDigest, digest } = archive
      const find = (text: string) => findings.push(`archive of ${month}: ${text}`)
      if (seals.end() !== sealsDigest) find('its sealed rows are not as they were made')
      if (index.end() !== indexDigest) find('its index of requests and references is not as it was made')
      if (digestArchive(archive, previous) !== digest)
        find('its digest does not fit, so it or the one before it was changed')
      if (recorded.get(month)?.digest !== digest) find('the audit trail does not have its digest')
      previous = digest
    }
    for (const [month, { isDetached }] of recorded)
      if (isDetached && !months.has(month))
        findings.push(`archive of ${month}: the audit trail says that it was detached, and it is missing`)
  }
}
