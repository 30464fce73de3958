import { hash } from 'node:crypto'
import { field } from './chain.ts'
import type { BookRow } from './registers.ts'

/*
 * The audit trail records what operators have changed, in the commit that changed it. Like the ledger it is append-only
 * and chained (ruling C15): each record carries a digest of its fields and of the digest before it.
 */

/** The person, or the part of the gateway, on whose behalf something is changed. */
export type Act = {
  /** `operator:<name>`, `cli:<user>@<host>`, or the name of a part of the gateway that acts by itself. */
  actor: string
  /** The address that the request came from; undefined at the command line. */
  address?: string | undefined
  /** Identifies repetitions of one creation: the `Idempotency-Key`, and a digest of all that was asked. */
  once?: { key: string; asked: string } | undefined
  /** The version of the object that the caller has seen; if the object has another one, the change is refused as `stale`. */
  version?: string | undefined
  /** A server's judgment of the clock that dates entries (ruling Y15); undefined if no server judges it. */
  isClockRight?: boolean | undefined
}

/** A change, by the name of its operation and the id of its object. Times are as in `formatTime`; secrets are cut to their beginnings. */
export type Trail = {
  operation: string
  object: string
  before?: ActDetails | undefined
  after?: ActDetails | undefined
}

export type ActDetails = Readonly<Record<string, string | number | boolean | null>>

/** A record of the audit trail. */
export type AuditRow = BookRow<'audit'>

/** A record without its place in the chain. */
export type NewAuditRow = Omit<AuditRow, 'seq' | 'atMs' | 'digest'>

const chained = ['actor', 'address', 'operation', 'object', 'before', 'after'] as const

/** Like `digestEntry`, but of form a1. @param previous the digest of the record before it, null for the first one. */
export function digestAudit(row: Omit<AuditRow, 'digest'>, previous: string | null): string {
  let text = field('a1') + field(previous) + field(row.seq) + field(row.atMs)
  for (const name of chained) text += field(row[name])
  return `a1:${hash('sha256', text, 'base64')}`
}

/** Places a record after `last`. Its time is never before that of `last`. */
export function placeAudit(row: NewAuditRow, nowMs: number, last: AuditRow | undefined): AuditRow {
  const placed = { ...row, seq: (last?.seq ?? 0) + 1, atMs: Math.max(nowMs, last?.atMs ?? 0) }
  return { ...placed, digest: digestAudit(placed, last?.digest ?? null) }
}

export function auditRow({ actor, address }: Act, { operation, object, before, after }: Trail): NewAuditRow {
  const text = (shown: ActDetails | undefined) => (shown === undefined ? null : JSON.stringify(shown))
  return { actor, address: address ?? null, operation, object, before: text(before), after: text(after) }
}

/** Selects the records that match all of the given fields. */
export type AuditFilter = {
  actor?: string | undefined
  operation?: string | undefined
  object?: string | undefined
  sinceMs?: number | undefined
  untilMs?: number | undefined
}
