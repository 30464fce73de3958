import type { DatabaseSync } from 'node:sqlite'
import type { AccountPage, AccountRow, KeyPage, KeyRow } from '../../accounts/book-rows.ts'
import type { BookWrite, Made } from '../../accounts/book-rules.ts'
import type { OperatorRow, SessionRow } from '../../accounts/operators.ts'
import { type AuditFilter, type AuditRow, placeAudit } from '../../accounts/trail.ts'
import type { Statement } from '../sql/dialect.ts'
import {
  insertAudit,
  type Query,
  selectAccountPage,
  selectAudit,
  selectKeyByDigest,
  selectKeyPage,
  selectMade,
  selectOperators,
  selectSession,
  touchSession,
  writeStatements,
} from '../sql/operators.ts'
import { dialect } from './listing.ts'

/** Who may operate, what they have changed, and pages of what they look at. */
export type Operators = {
  /** Inside the caller's transaction. Nothing for what is not about operators. */
  write(write: BookWrite): void
  /** By id or name. */
  findOperators(idOrName: string): OperatorRow[]
  findMade(once: { actor: string; key: string }): Made | undefined
  listOperators(): OperatorRow[]
  findOperator(by: { id: string } | { digest: string }): OperatorRow | undefined
  findKeyByDigest(digest: string): KeyRow | undefined
  findSession(digest: string): SessionRow | undefined
  touchSession(digest: string, seenMs: number): void
  listAudit(which: AuditFilter & { limit: number; beyond?: number | undefined }): AuditRow[]
  pageAccounts(page: AccountPage): AccountRow[]
  pageKeys(page: KeyPage): KeyRow[]
}

const accounts = 'SELECT a.id, a.name, a.state, a.balance, a.created_ms FROM accounts a'

export function createOperators(db: DatabaseSync): Operators {
  return {
    write(write) {
      if (write.kind === 'post_audit') {
        const last = first(selectAudit(dialect, { limit: 1 }))
        run(insertAudit(dialect, placeAudit(write.row, write.nowMs, last)))
      } else for (const statement of writeStatements(dialect, write) ?? []) run(statement)
    },
    findOperators: (idOrName) => all(selectOperators(dialect, { id: idOrName, name: idOrName })),
    findMade: (once) => first(selectMade(dialect, once)),
    listOperators: () => all(selectOperators(dialect)),
    findOperator: (by) => first(selectOperators(dialect, by)),
    findKeyByDigest: (digest) => first(selectKeyByDigest(dialect, digest)),
    findSession: (digest) => first(selectSession(dialect, digest)),
    touchSession: (digest, seenMs) => run(touchSession(dialect, digest, seenMs)),
    listAudit: (which) => all(selectAudit(dialect, which)),
    pageAccounts: (page) => all(selectAccountPage(dialect, accounts, page)),
    pageKeys: (page) => all(selectKeyPage(dialect, page)),
  }

  function all<T>({ text, values, read }: Query<T>): T[] {
    return db
      .prepare(text)
      .all(...values)
      .map(read)
  }

  function first<T>(asked: Query<T>): T | undefined {
    return all(asked)[0]
  }

  function run({ text, values }: Statement): void {
    db.prepare(text).run(...values)
  }
}
