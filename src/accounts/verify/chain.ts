import { type ChainedRow, digestEntry, isKnownForm } from '../chain.ts'
import { datedMax, isAhead } from '../clock.ts'
import { floorMsOf } from '../corrections.ts'
import type { VerifiedEntry } from '../entry-row.ts'

/**
 * The end of an account's chain: its balance, and the number of its last entry.
 * @property digest the digest on which the next entry builds, if the store keeps it outside the entries
 */
export type AccountEnd = { id: string; balanceNanos: bigint; seq: number; digest?: string | null }

/** The last checked entry of an account's chain. */
type Link = { seq: number; balanceNanos: bigint; postedMs: number; digest: string | null }

const start: Link = { seq: 0, balanceNanos: 0n, postedMs: 0, digest: null }

/**
 * Checks the chain of each account (ruling C15). Entries are numbered without gaps. Each balance and digest follows
 * from the previous one. Posting times never decrease. The account has the balance of its last entry.
 */
export function createChainCheck(findings: string[]) {
  const ends = new Map<string, Link>()
  return { check, lastOf, goOn, end }

  function lastOf(accountId: string): Link {
    return ends.get(accountId) ?? start
  }

  /** Sets the last entry of an account's chain, if the entries up to that one are not read here. */
  function goOn(accountId: string, link: Link): void {
    ends.set(accountId, link)
  }

  function check({ entry, row, keyAccountId }: VerifiedEntry): void {
    const { accountId, seq, kind, amountNanos, balanceAfterNanos, postedMs, digest } = entry
    const last = ends.get(accountId) ?? start
    const find = (text: string) => findings.push(`account ${accountId}, entry ${seq}: ${text}`)
    if (seq !== last.seq + 1) find(`follows entry ${last.seq}`)
    const balanceNanos = last.balanceNanos + (kind === 'credit' ? amountNanos : -amountNanos)
    if (balanceAfterNanos !== balanceNanos) find(`balance after it is ${balanceAfterNanos}, should be ${balanceNanos}`)
    if (postedMs < last.postedMs) find('was posted before the entry before it')
    if (!isKnownForm(digest)) find('has a digest of a form that is not known here')
    else if (digest !== digestEntry(row as ChainedRow, last.digest)) find('is not what its digest was made of')
    const { keyId } = entry.bill ?? entry.returned ?? {}
    if (keyId !== undefined && keyAccountId !== accountId)
      find(`its key ${keyId} ${keyAccountId === undefined ? 'does not exist' : `belongs to account ${keyAccountId}`}`)
    // The next entry is compared with the computed balance and the stored digest. So a forged value causes only one
    // finding.
    ends.set(accountId, { seq, balanceNanos, postedMs: floorMsOf(entry), digest })
  }

  /**
   * Compares the end of each chain with its account.
   * @param accounts all accounts, each as it was when its last entry was read
   * @param nowMs the store's time, or later
   */
  function end(accounts: Iterable<AccountEnd>, nowMs: number): void {
    for (const account of accounts) {
      const { id } = account
      const { seq, balanceNanos, postedMs, digest } = ends.get(id) ?? start
      if (isAhead(postedMs, nowMs))
        findings.push(
          `account ${id}: its last entry is posted at ${new Date(Math.min(postedMs, datedMax)).toISOString()}, and that is to come: a clock was ahead`,
        )
      if (account.balanceNanos !== balanceNanos)
        findings.push(`account ${id}: balance ${account.balanceNanos}, its entries sum to ${balanceNanos}`)
      if (account.seq !== seq)
        findings.push(`account ${id}: should have ${account.seq} entries, the last is number ${seq}`)
      if (account.digest !== undefined && account.digest !== digest)
        findings.push(`account ${id}: its next entry would not follow from the last one`)
      ends.delete(id)
    }
    for (const id of ends.keys()) findings.push(`account ${id}: has entries and does not exist`)
  }
}
