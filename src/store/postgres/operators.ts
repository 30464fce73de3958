import type { AccountPage, AccountRow, KeyPage, KeyRow } from '../../accounts/book-rows.ts'
import type { BookWrite, Made } from '../../accounts/book-rules.ts'
import type { BookStore } from '../../accounts/books.ts'
import type { OperatorRow } from '../../accounts/operators.ts'
import { placeAudit } from '../../accounts/trail.ts'
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
import type { Transaction } from './database.ts'
import { dialect } from './slices.ts'
import { ask } from './texts.ts'

type OperatorReads = Pick<
  BookStore,
  'listOperators' | 'findOperator' | 'findKeyByDigest' | 'findSession' | 'touchSession' | 'listAudit'
> & {
  pageAccounts(page: AccountPage): Promise<AccountRow[]>
  pageKeys(page: KeyPage): Promise<KeyRow[]>
  /** In the caller's transaction, which has the lock of all operators. Nothing for what is not about them. */
  writeOperators(write: BookWrite): Promise<void>
  /** By id or name. */
  findOperators(idOrName: string): Promise<OperatorRow[]>
  findMade(once: { actor: string; key: string }): Promise<Made | undefined>
}

const accounts = `SELECT a.id, a.name, a.state, b.balance, a.created_ms
  FROM triwire.accounts a JOIN triwire.balances b ON b.account_id = a.id`

/** Who may operate, what they have changed, and pages of what they look at. */
export function createOperators({ query }: Pick<Transaction, 'query'>): OperatorReads {
  return {
    async writeOperators(write) {
      if (write.kind === 'post_audit') {
        const last = await first(selectAudit(dialect, { limit: 1 }))
        await run(insertAudit(dialect, placeAudit(write.row, write.nowMs, last)))
      } else for (const statement of writeStatements(dialect, write) ?? []) await run(statement)
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

  async function all<T>({ text, values, read }: Query<T>): Promise<T[]> {
    return (await ask(query, text, values)).map(read)
  }

  async function first<T>(asked: Query<T>): Promise<T | undefined> {
    return (await all(asked))[0]
  }

  async function run({ text, values }: Statement): Promise<void> {
    await query(text, values)
  }
}
