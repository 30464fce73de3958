import type { DatabaseSync } from 'node:sqlite'
import {
  type AccountPage,
  type AccountRow,
  type KeyPage,
  type KeyRow,
  readAccountRow,
  readKeyRow,
} from '../../accounts/book-rows.ts'
import type { Made, Write } from '../../accounts/book-rules.ts'
import type { OperatorRow, SessionRow } from '../../accounts/operators.ts'
import { type AuditFilter, type AuditRow, placeAudit } from '../../accounts/trail.ts'
import type { Statement } from '../sql/dialect.ts'
import {
  insertAudit,
  readAuditRow,
  readMade,
  readOperatorRow,
  readSessionRow,
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
  write(write: Write): void
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
        const last = first(selectAudit(dialect, { limit: 1 }), readAuditRow)
        run(insertAudit(dialect, placeAudit(write.row, write.nowMs, last)))
      } else for (const statement of writeStatements(dialect, write) ?? []) run(statement)
    },
    findOperators: (idOrName) => all(selectOperators(dialect, { id: idOrName, name: idOrName })).map(readOperatorRow),
    findMade: (once) => first(selectMade(dialect, once), readMade),
    listOperators: () => all(selectOperators(dialect)).map(readOperatorRow),
    findOperator: (by) => first(selectOperators(dialect, by), readOperatorRow),
    findKeyByDigest: (digest) => first(selectKeyByDigest(dialect, digest), readKeyRow),
    findSession: (digest) => first(selectSession(dialect, digest), readSessionRow),
    touchSession: (digest, seenMs) => run(touchSession(dialect, digest, seenMs)),
    listAudit: (which) => all(selectAudit(dialect, which)).map(readAuditRow),
    pageAccounts: (page) => all(selectAccountPage(dialect, accounts, page)).map(readAccountRow),
    pageKeys: (page) => all(selectKeyPage(dialect, page)).map(readKeyRow),
  }

  function all({ text, values }: Statement): Record<string, unknown>[] {
    return db.prepare(text).all(...values)
  }

  function first<T>(statement: Statement, read: (row: Record<string, unknown>) => T): T | undefined {
    const [row] = all(statement)
    return row && read(row)
  }

  function run({ text, values }: Statement): void {
    db.prepare(text).run(...values)
  }
}
