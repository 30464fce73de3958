import type { CredentialHeaders } from '../catalog/credentials.ts'
import type { UpstreamAccount } from '../config/config.ts'

/** A key with its current value. */
export interface LiveKey {
  /**
   * The key. Undefined before the source has given a key, and after the key has expired. The account then gets no
   * requests.
   */
  readonly value: string | undefined
  readonly version: number
  /** The current key and the key before it, because running answers may still quote the old key. */
  readonly known: readonly string[]
  /**
   * Reports that the provider refused the account, so that the source of the key is read again early.
   * @param isForKey whether the refusal is about the key, and not about money or permissions
   */
  doubt(isForKey: boolean): void
  /** Set if the key is a credential of a cloud, which expires. */
  readonly credential?: CloudCredential
}

/** A credential of a cloud: how it is sent, how long it lasts, and how it is renewed. */
export interface CloudCredential {
  /** Makes the headers for one request. A signature is valid for that request only. */
  readonly headers: CredentialHeaders
  readonly state: CredentialState
  /** Whether a renewal is under way. */
  readonly isRenewing: boolean
  /**
   * Call this if the provider refused the credential as expired, or its signature for a wrong time. Fetches a new
   * credential. If the provider's date shows that our clock is wrong, only the clock is corrected.
   * @param date the date of the provider's answer
   */
  renew(date: string | undefined): void
  /**
   * Asks the provider which identity the credential has.
   * @returns the answer; if no answer comes, the last known identity
   */
  identify(): Promise<string>
}

/** Facts of a credential for operators. */
export type CredentialState = {
  source: string | undefined
  identity: string | undefined
  /** The time until the credential expires, in ms, at least 0; undefined if it does not expire. */
  leftMs: number | undefined
  /** How far the clock of the cloud is ahead of ours, in ms; undefined if no answer has shown it yet. */
  aheadMs: number | undefined
}

export type KeyFinder = (account: UpstreamAccount) => LiveKey

/** Logs what happens to keys, but never a key or the output of a command. */
export type KeyReport = (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
