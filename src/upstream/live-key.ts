import type { CredentialHeaders } from '../catalog/credentials.ts'
import type { UpstreamAccount } from '../config/config.ts'

/** A key with its current value. */
export interface LiveKey {
  /** Undefined until the source has given a key, and after its end. Until then the account gets no requests. */
  readonly value: string | undefined
  readonly version: number
  /** The key and the one before it, because answers under way may still quote the old one. */
  readonly known: readonly string[]
  /** The provider refused the key: its source is read again early. */
  doubt(): void
  /** Of a credential of a cloud, which ends by itself. */
  readonly credential?: CloudCredential
}

/** The owner of a credential of a cloud: how it is sent, how long it lasts, and how it is renewed. */
export interface CloudCredential {
  /** The headers of one request; of a signature they are good for that request alone. */
  readonly headers: CredentialHeaders
  readonly state: CredentialState
  /** Whether a renewal is under way. */
  readonly isRenewing: boolean
  /**
   * The provider refused it as ended, or the signature for its time: a new one is fetched now, unless the clock explains it.
   * @param date of the provider's answer
   */
  renew(date: string | undefined): void
  /** Asks whom it stands for. @returns the best that is known if nobody says more */
  identify(): Promise<string>
}

/** Facts of a credential for operators. */
export type CredentialState = {
  source: string | undefined
  identity: string | undefined
  /** The rest of its life, in ms, 0 if there is none; undefined: it has no end. */
  leftMs: number | undefined
  /** How far the clock of the cloud is ahead of ours, in ms; undefined before it was seen. */
  aheadMs: number | undefined
}

export type KeyFinder = (account: UpstreamAccount) => LiveKey

/** Logs what happens to keys, but never a key or the output of a command. */
export type KeyReport = (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
