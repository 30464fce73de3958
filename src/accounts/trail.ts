import { hash } from 'node:crypto'
import { field } from './chain.ts'
import type { BookRow } from './registers.ts'

/*
 * The audit trail records what operators change, in the same commit as the change. Like the ledger it is append-only
 * and chained (ruling C15): each record carries a digest of its fields and of the previous digest.
 */

/** The person, or the part of the gateway, on whose behalf a change is made. */
export type Act = {
  /** `operator:<name>`, `cli:<user>@<host>`, or the name of a part of the gateway that acts by itself. */
  actor: string
  /** The address from which the request came; undefined at the command line. */
  address?: string | undefined
  /** Set for a creation that may be repeated. `key`: the `Idempotency-Key`. `asked`: a digest of the whole request. */
  once?: { key: string; asked: string } | undefined
  /**
   * The version of the object that the caller has seen. If the object has another version, the change is refused as
   * `stale`.
   */
  version?: string | undefined
  /**
   * The time that the clock of the store should show, in Unix milliseconds (ruling Y15). NaN while the clock is in
   * doubt. Undefined if no server watches the clock.
   */
  expectedMs?: number | undefined
}

/**
 * A change, with the name of its operation and the id of its object. Times are in the form of `formatTime`. Secrets are
 * cut to their first characters.
 */
export type Trail = {
  operation: string
  object: string
  before?: ActDetails | undefined
  after?: ActDetails | undefined
}

/** The actor of a change that triwire itself makes, without an operator. */
export const nobody: Act = { actor: 'triwire' }

export type ActDetails = Readonly<Record<string, string | number | boolean | null>>

/** A record of the audit trail. */
export type AuditRow = BookRow<'audit'>

/** A record that has no place in the chain yet, and therefore no number, time or digest. */
export type NewAuditRow = Omit<AuditRow, 'seq' | 'atMs' | 'digest'>

const chained = ['actor', 'address', 'operation', 'object', 'before', 'after'] as const

/**
 * Computes the digest of a record in the form `a1`, as `digestEntry` does for an entry. @param previous the digest of
 * the previous record; null for the first record
 */
export function digestAudit(row: Omit<AuditRow, 'digest'>, previous: string | null): string {
  let text = field('a1') + field(previous) + field(row.seq) + field(row.atMs)
  for (const name of chained) text += field(row[name])
  return `a1:${hash('sha256', text, 'base64')}`
}

/** Places a record after `last`. The record's time is never before the time of `last`. */
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

/** Recomputes the digests of a whole trail: see `Books.verifyAudit`. @param listAudit lists the newest records first */
export async function verifyAudit(
  listAudit: (page: { limit: number; beyond?: number | undefined }) => Promise<AuditRow[]>,
): Promise<{ findings: string[]; head: string | undefined }> {
  const findings: string[] = []
  let later: AuditRow | undefined
  let head: string | undefined
  for (;;) {
    const rows = await listAudit({ limit: 500, beyond: later?.seq })
    for (const row of rows) {
      head ??= `${row.seq}/${row.digest}`
      if (later) compare(later, row)
      later = row
    }
    if (rows.length < 500) break
  }
  if (later) compare(later, undefined)
  return { findings, head: findings.length === 0 ? head : undefined }

  function compare(row: AuditRow, before: AuditRow | undefined): void {
    if ((before?.seq ?? 0) !== row.seq - 1) findings.push(`audit record ${row.seq}: the record before it is missing`)
    else if (digestAudit(row, before?.digest ?? null) !== row.digest)
      findings.push(`audit record ${row.seq}: its digest does not fit, so it or the one before it was changed`)
  }
}
