import { hash } from 'node:crypto'
import { field } from './chain.ts'

/*
 * The audit trail: what operators have changed, in the commit that changed it. Append-only and chained as the ledger is
 * (ruling C15): each record carries a digest of its fields and of the digest before it.
 */

/** On whose behalf something is changed. */
export type Act = {
  /** `operator:<name>`, `cli:<user>@<host>`, or what of us does it by itself. */
  actor: string
  /** The address it came from; none at the command line. */
  address?: string | undefined
  /** What makes a repeated creation the same one (`Idempotency-Key`), and a digest of all that was asked. */
  once?: { key: string; asked: string } | undefined
  /** The version that the asker has seen: another one is `stale`. */
  version?: string | undefined
  /** As a server judges the clock that dates entries (ruling Y15); undefined where none does. */
  isClockRight?: boolean | undefined
}

/** What was changed: by the name of an operation, and an object by its id. Times as `formatTime`, of secrets the first characters at most. */
export type Trail = {
  operation: string
  object: string
  before?: ActDetails | undefined
  after?: ActDetails | undefined
}

export type ActDetails = Readonly<Record<string, string | number | boolean | null>>

/** A record before it has a place in the chain. */
export type NewAuditRow = {
  actor: string
  address: string | null
  operation: string
  object: string
  /** JSON objects with what has changed; null where there was, or is, nothing. */
  before: string | null
  after: string | null
}

/** A record of the audit trail. */
export type AuditRow = NewAuditRow & { seq: number; atMs: number; digest: string }

const chained = ['actor', 'address', 'operation', 'object', 'before', 'after'] as const

/** As `digestEntry`, of form a1. @param previous of the record before it, null for the first one. */
export function digestAudit(row: NewAuditRow & { seq: number; atMs: number }, previous: string | null): string {
  let text = field('a1') + field(previous) + field(row.seq) + field(row.atMs)
  for (const name of chained) text += field(row[name])
  return `a1:${hash('sha256', text, 'base64')}`
}

/** The record behind `last`. Its time is never before that one's. */
export function placeAudit(
  row: NewAuditRow,
  nowMs: number,
  last: { seq: number; atMs: number; digest: string } | undefined,
) {
  const placed = { ...row, seq: (last?.seq ?? 0) + 1, atMs: Math.max(nowMs, last?.atMs ?? 0) }
  return { ...placed, digest: digestAudit(placed, last?.digest ?? null) } satisfies AuditRow
}

export function auditRow({ actor, address }: Act, { operation, object, before, after }: Trail): NewAuditRow {
  const text = (shown: ActDetails | undefined) => (shown === undefined ? null : JSON.stringify(shown))
  return { actor, address: address ?? null, operation, object, before: text(before), after: text(after) }
}

/** Which records are meant: those that fit all of what is given. */
export type AuditFilter = {
  actor?: string | undefined
  operation?: string | undefined
  object?: string | undefined
  sinceMs?: number | undefined
  untilMs?: number | undefined
}
