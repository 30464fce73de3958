import type { DatabaseSync } from 'node:sqlite'
import { type AccountRow, type KeyRow, readAccountRow, readKeyRow } from '../../accounts/book-rows.ts'
import { accountOf, type BookChange, stepsOf } from '../../accounts/book-rules.ts'
import { findFacts, make } from '../sql/books.ts'
import type { Dialect } from '../sql/dialect.ts'
import { isKeyRead, keysWithSpends } from '../sql/spends.ts'
import type { Entries } from './entries.ts'
import { readTogether, transact } from './open.ts'
import { type Run, refuseMoved } from './run.ts'

/**
 * Accounts that another process has changed, for a server to read again. Each account comes with all its valid keys.
 * @property revision the last revision (number of a change) that was read
 * @property isLast whether no later changes exist
 */
export type Changes = {
  revision: bigint
  isLast: boolean
  accounts: AccountRow[]
  keys: KeyRow[]
  hasForeignKeys: boolean
}

/** The most accounts in one page of changes. All accounts of a large store would not fit into a thread's memory. */
const pageMax = 5_000

export type Accounts = ReturnType<typeof createAccounts>

/** Creates functions that change accounts and keys. A changed account gets a new revision, by which servers find it. */
export function createAccounts(
  db: DatabaseSync,
  run: Run,
  dialect: Dialect,
  { postCredits, forget, nowMs }: Pick<Entries, 'postCredits' | 'forget'> & { nowMs(): number },
) {
  const countUp = db.prepare('UPDATE accounts SET revision = (SELECT max(revision) + 1 FROM accounts) WHERE id = ?')
  const setUsed = db.prepare('UPDATE keys SET last_used_ms = max(ifnull(last_used_ms, 0), ?) WHERE id = ?')
  const dataVersion = db.prepare('PRAGMA data_version')
  const newest = db.prepare('SELECT ifnull(max(revision), 0) AS revision FROM accounts')
  const endOfPage = db.prepare(
    `SELECT revision FROM accounts WHERE revision > ? ORDER BY revision LIMIT 1 OFFSET ${pageMax - 1}`,
  )
  const accountsWithin = db.prepare(`${dialect.accounts()} WHERE a.revision > ? AND a.revision <= ?`)
  const keysWithin = db.prepare(
    `SELECT * FROM ${keysWithSpends(dialect)} WHERE ${isKeyRead('keys', '?')} AND account_id IN
       (SELECT id FROM accounts WHERE revision > ? AND revision <= ?)`,
  )
  const foreign = db.prepare(
    'SELECT EXISTS (SELECT 1 FROM keys WHERE origin IS NOT NULL AND revoked_ms IS NULL) AS has',
  )
  return { change, touchKeys, readDataVersion, readChanges }

  /** Makes a change of the books in one transaction. Implements `BookStore.change`. */
  function change<T>({ about, decide }: BookChange<T>): T {
    return transact(db, () => {
      refuseMoved(db)
      const { writes, result } = decide(run(findFacts(dialect, about)))
      // The change may have set a budget, so the remembered budgets are void.
      forget()
      for (const step of stepsOf(writes)) {
        if (Array.isArray(step)) postCredits(step)
        else run(make(dialect, step))
      }
      for (const id of new Set(writes.map(accountOf))) if (id !== undefined) countUp.run(id)
      return result
    })
  }

  /** Writes when keys were last used. Servers need not read that, so the account gets no new revision. */
  function touchKeys(uses: Iterable<readonly [keyId: string, usedMs: number]>): void {
    transact(db, () => {
      for (const [keyId, usedMs] of uses) setUsed.run(usedMs, keyId)
    })
  }

  /** Reads a number that changes with each commit of another connection. Each connection has a number of its own. */
  function readDataVersion(): bigint {
    return dataVersion.get()!.data_version as bigint
  }

  /** Reads one page of changes. @param revision the last revision of the previous page; −1n begins with all accounts */
  function readChanges(revision: bigint): Changes {
    return readTogether(db, () => {
      const end = newest.get()!.revision as bigint
      const through = (endOfPage.get(revision)?.revision as bigint | undefined) ?? end
      return {
        ...{ revision: through, isLast: through === end },
        accounts: accountsWithin.all(revision, through).map(readAccountRow),
        keys: keysWithin.all(nowMs(), revision, through).map(readKeyRow),
        hasForeignKeys: Number(foreign.get()!.has) === 1,
      }
    })
  }
}

type Source = Pick<Accounts, 'readDataVersion' | 'readChanges'>

/** Creates a feed of the changes that other processes make in the store. It returns each change once. */
export function createFeed() {
  let revision = -1n
  let last: { source: Source; dataVersion: bigint } | undefined
  return { read }

  /**
   * Reads all changes since the last call, page by page. If no other process has changed the store, this is very quick.
   */
  function* read(source: Source): Iterable<Changes> {
    // The data version is read before the changes, so a commit between the two reads is read twice rather than missed.
    // Each connection has its own data versions, so only versions of one connection are compared.
    const dataVersion = source.readDataVersion()
    if (last?.source === source && last.dataVersion === dataVersion) return
    for (let isLast = false; !isLast; ) {
      const changes = source.readChanges(revision)
      ;({ revision, isLast } = changes)
      yield changes
    }
    last = { source, dataVersion }
  }
}
