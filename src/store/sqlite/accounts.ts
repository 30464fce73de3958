import type { DatabaseSync } from 'node:sqlite'
import { type AccountRow, type KeyRow, readAccountRow, readKeyRow } from '../../accounts/book-rows.ts'
import { accountOf, type BookChange, type BookWrite, type ChangeScope } from '../../accounts/book-rules.ts'
import type { ClockFacts } from '../../accounts/clock.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { readClock, selectClock } from '../sql/clock.ts'
import { keysWithSpends } from '../sql/spends.ts'
import type { Entries } from './entries.ts'
import { refuseMoved } from './moved.ts'
import { readTogether, transact } from './open.ts'
import type { Operators } from './operators.ts'
import { type Prepare, preparing } from './preparing.ts'
import { readUsageState } from './usage.ts'
import { createUsageKeeping } from './usage-keep.ts'

/** What a server needs to know again after another process has written: whole accounts, each with all its valid keys. */
export type Changes = { revision: bigint; accounts: AccountRow[]; keys: KeyRow[] }

/** Accounts and keys in SQL. Every change counts the account's revision up, which is how a running server finds it. */
export interface Accounts {
  /** One transaction, see `BookStore`. */
  change<T>(change: BookChange<T>): T
  /** Its time, and what that can be held against (ruling Y15). */
  readClock(): ClockFacts
  /** By id, else by name. */
  findAccount(idOrName: string): AccountRow | undefined
  listAccounts(): AccountRow[]
  listKeys(accountId?: string): KeyRow[]
  /** By id, first characters or label; several keys may have one label. */
  findKeys(name: string): KeyRow[]
  /** Notes when keys were last used. It changes nothing that a server reads again. */
  touchKeys(uses: Iterable<readonly [keyId: string, usedMs: number]>): void
  /** Another number whenever another connection has committed, and only then. Means nothing on another connection. */
  readDataVersion(): bigint
  /** @param revision of the last reading; −1n for everything. */
  readChanges(revision: bigint): Changes
}

export function createAccounts(
  db: DatabaseSync,
  entries: Pick<Entries, 'findCredit' | 'postCredit' | 'writeSpend'>,
  operators: Operators,
  nowMs: () => number,
): Accounts {
  const { findFacts, ...readers } = createReaders(db, entries, operators)
  const write = createWriter(db, entries, operators)
  const setUsed = db.prepare('UPDATE keys SET last_used_ms = max(ifnull(last_used_ms, 0), ?) WHERE id = ?')
  const clock = db.prepare(selectClock('main'))
  const clockFacts = () => readClock(clock.get()!, nowMs())
  return {
    ...readers,
    ...createFollowing(db),
    readClock: clockFacts,
    change({ about, decide }) {
      return transact(db, () => {
        refuseMoved(db)
        const clock = about.isDated && clockFacts()
        const { writes, result } = decide({ ...findFacts(about), clock, nowMs: nowMs() })
        for (const one of writes) write(one)
        return result
      })
    },
    touchKeys(uses) {
      transact(db, () => {
        for (const [keyId, usedMs] of uses) setUsed.run(usedMs, keyId)
      })
    },
  }
}

const columns = 'id, name, state, balance, created_ms'
const keys = keysWithSpends('main')

function createReaders(db: DatabaseSync, { findCredit }: Pick<Entries, 'findCredit'>, operators: Operators) {
  const byIdOrName = db.prepare(`SELECT ${columns} FROM accounts WHERE id = ?1 OR name = ?1 ORDER BY id = ?1 DESC`)
  const byName = db.prepare(`SELECT ${columns} FROM accounts WHERE name = ?`)
  const all = db.prepare(`SELECT ${columns} FROM accounts ORDER BY created_ms, id`)
  const keysOf = db.prepare(`SELECT * FROM ${keys} WHERE ?1 IS NULL OR account_id = ?1 ORDER BY created_ms, id`)
  const keysByName = db.prepare(`SELECT * FROM ${keys} WHERE id = ?1 OR prefix = ?1`)
  const keysByAnyName = db.prepare(
    `SELECT * FROM ${keys} WHERE id = ?1 OR prefix = ?1 OR label = ?1 ORDER BY created_ms, id`,
  )
  const findAccount = (idOrName: string) => readFirst(byIdOrName.all(idOrName))
  const prepare = preparing(db)
  return {
    findAccount,
    listAccounts: () => all.all().map(readAccountRow),
    listKeys: (accountId?: string) => keysOf.all(accountId ?? null).map(readKeyRow),
    findKeys: (name: string) => keysByAnyName.all(name).map(readKeyRow),
    findFacts({ account, accountName, key, reference, operator, once, reporting }: ChangeScope) {
      return {
        account: account === undefined ? undefined : findAccount(account),
        accountNamed: accountName === undefined ? undefined : readFirst(byName.all(accountName)),
        keys: key === undefined ? [] : keysByName.all(key).map(readKeyRow),
        credit: reference === undefined ? undefined : findCredit(reference),
        operators: operator === undefined ? [] : operators.findOperators(operator),
        made: once === undefined ? undefined : operators.findMade(once),
        reporting: reporting && { ...readZone(prepare), servers: [] },
      }
    },
  }
}

function readZone(prepare: Prepare) {
  const state = readUsageState(prepare)
  return { timeZone: state.timeZone, isRecorded: isRecorded(state) }
}

function createWriter(
  db: DatabaseSync,
  { postCredit, writeSpend }: Pick<Entries, 'postCredit' | 'writeSpend'>,
  operators: Operators,
): (write: BookWrite) => void {
  const insert = db.prepare(
    `INSERT INTO accounts (id, name, state, revision, created_ms)
     VALUES (?, ?, ?, (SELECT ifnull(max(revision), 0) + 1 FROM accounts), ?)`,
  )
  const { rezone } = createUsageKeeping(db)
  const setState = db.prepare('UPDATE accounts SET state = ? WHERE id = ?')
  const setName = db.prepare('UPDATE accounts SET name = ? WHERE id = ?')
  const countUp = db.prepare('UPDATE accounts SET revision = (SELECT max(revision) + 1 FROM accounts) WHERE id = ?')
  return (write) => {
    if (write.kind === 'insert_account') {
      const { id, name, state, createdMs } = write.account
      insert.run(id, name, state, createdMs)
      return
    }
    if (write.kind === 'set_state') setState.run(write.state, write.accountId)
    else if (write.kind === 'set_name') setName.run(write.name, write.accountId)
    else if (write.kind === 'post_credit') postCredit(write)
    else if (write.kind === 'set_zone') rezone({ timeZone: write.timeZone })
    else if (write.kind === 'set_spend') writeSpend((spends) => spends.set(write))
    else if (write.kind === 'clear_spend') writeSpend((spends) => spends.clear(write))
    else {
      operators.write(write)
      // What is written of a key may be its budget.
      writeSpend((spends) => {
        if (write.kind === 'set_bounds') spends.arm(write.scope)
      })
    }
    const accountId = accountOf(write)
    if (accountId !== undefined) countUp.run(accountId)
  }
}

function createFollowing(db: DatabaseSync): Pick<Accounts, 'readDataVersion' | 'readChanges'> {
  const dataVersion = db.prepare('PRAGMA data_version')
  const newest = db.prepare('SELECT ifnull(max(revision), 0) AS revision FROM accounts')
  const accountsSince = db.prepare(`SELECT ${columns} FROM accounts WHERE revision > ?`)
  const keysSince = db.prepare(
    `SELECT * FROM ${keys} WHERE revoked_ms IS NULL AND account_id IN (SELECT id FROM accounts WHERE revision > ?)`,
  )
  return {
    readDataVersion: () => dataVersion.get()!.data_version as bigint,
    readChanges(revision) {
      return readTogether(db, () => ({
        revision: newest.get()!.revision as bigint,
        accounts: accountsSince.all(revision).map(readAccountRow),
        keys: keysSince.all(revision).map(readKeyRow),
      }))
    },
  }
}

function readFirst([row]: Record<string, unknown>[]): AccountRow | undefined {
  return row && readAccountRow(row)
}
