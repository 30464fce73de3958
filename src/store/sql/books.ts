import {
  type AccountRow,
  type KeyPage,
  type KeyRow,
  keysNamedMax,
  readAccountRow,
  readKeyRow,
} from '../../accounts/book-rows.ts'
import type { BookWrite, ChangeScope, Facts } from '../../accounts/book-rules.ts'
import { placeAudit } from '../../accounts/trail.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { readClock, readNowMs } from './clock.ts'
import { type Dialect, insert, type Put, statement, update } from './dialect.ts'
import { pageKeys } from './key-pages.ts'
import {
  insertAudit,
  lowerAscii,
  query,
  selectAccountPage,
  selectAudit,
  selectKeyByDigest,
  selectMade,
  selectOperators,
  selectSession,
  touchSession,
  whereAll,
  writeStatements,
} from './operators.ts'
import { keysWithSpends, lockAccount, setSpend, sumSpend } from './spends.ts'
import { all, first, type Query, rowOf, rowsOf, runAll, type StoreStep } from './step.ts'
import { readUsageState, rezone } from './usage-keep.ts'
import { createWarnings, rearm } from './warnings.ts'

/** The questions of the books (see `BookStore`), except those about entries and figures for reports. */
export function createQuestions(dialect: Dialect) {
  return {
    readNowMs: () => readNowMs(dialect),
    findAccount: (idOrName: string) => first(selectAccounts(dialect, idOrName)),
    listAccounts: () => all(query(dialect, readAccountRow, () => `${dialect.accounts} ORDER BY a.created_ms, a.id`)),
    pageAccounts: (page: Parameters<typeof selectAccountPage>[1]) => all(selectAccountPage(dialect, page)),
    pageKeys: (page: KeyPage) => pageKeys(dialect, page),
    listKeys: (accountId?: string) =>
      all(selectKeys(dialect, accountId === undefined ? {} : { account_id: accountId })),
    findKeys: (name: string, accountId?: string) =>
      all(selectKeys(dialect, { id: name, prefix: name, label: name }, { accountId, most: keysNamedMax + 1 })),
    sumSpend: (of: Parameters<typeof sumSpend>[1]) => sumSpend(dialect, of),
    listOperators: () => all(selectOperators(dialect)),
    findOperator: (by: { id: string } | { digest: string }) => first(selectOperators(dialect, by)),
    findKeyByDigest: (digest: string) => first(selectKeyByDigest(dialect, digest)),
    findSession: (digest: string) => first(selectSession(dialect, digest)),
    touchSession: (digest: string, seenMs: number) => runAll([touchSession(dialect, digest, seenMs)]),
    listAudit: (which: Parameters<typeof selectAudit>[1]) => all(selectAudit(dialect, which)),
    ...createWarnings(dialect),
  }
}

/** By id, else by name. */
function selectAccounts(dialect: Dialect, idOrName: string): Query<AccountRow> {
  return query(dialect, readAccountRow, (put) => {
    const asked = put(idOrName)
    return `${dialect.accounts} WHERE a.id = ${asked} OR a.name = ${asked} ORDER BY a.id = ${asked} DESC`
  })
}

/** All keys, or those that have any of these. @param most the most keys; those with only the label come last */
function selectKeys(
  dialect: Dialect,
  by: { account_id?: string; id?: string; prefix?: string; label?: string },
  { accountId, most }: { accountId?: string | undefined; most?: number } = {},
): Query<KeyRow> {
  return query(dialect, readKeyRow, (put) => {
    const is = ([column, value]: [string, string]) =>
      isIndexedLower[column]
        ? `(lower(${column}) = ${put(lowerAscii(value))} AND ${column} = ${put(value)})`
        : `${column} = ${put(value)}`
    const parts = Object.entries(by).map(is)
    const any = parts.length > 0 ? [`(${parts.join(' OR ')})`] : []
    const where = whereAll(accountId === undefined ? any : [...any, `account_id = ${put(accountId)}`])
    const isLast = by.label === undefined ? '' : `(id <> ${put(by.label)} AND prefix <> ${put(by.label)}),`
    const limit = most === undefined ? '' : `ORDER BY ${isLast} created_ms, id LIMIT ${most}`
    const found = `(SELECT * FROM ${dialect.schema}.keys ${where} ${limit})`
    return `SELECT * FROM ${keysWithSpends(dialect, found)} ORDER BY created_ms, id`
  })
}

/** Columns that have an index of their lower case only. */
const isIndexedLower: Readonly<Record<string, boolean>> = { prefix: true, label: true }

/** Finds what a change asks about (see `BookStore.change`), in its transaction. */
export function* findFacts(dialect: Dialect, about: ChangeScope): StoreStep<Facts> {
  const { account, accountName, key, reference, operator, once } = about
  const named = (put: Put) => `${dialect.accounts} WHERE a.name = ${put(accountName!)}`
  return {
    account: account === undefined ? undefined : yield* first(selectAccounts(dialect, account)),
    accountNamed: accountName === undefined ? undefined : yield* first(query(dialect, readAccountRow, named)),
    keys: key === undefined ? [] : yield* all(selectKeys(dialect, { id: key, prefix: key })),
    credit: reference === undefined ? undefined : yield* findCredit(dialect, reference),
    operators: operator === undefined ? [] : yield* all(selectOperators(dialect, { id: operator, name: operator })),
    made: once === undefined ? undefined : yield* first(selectMade(dialect, once)),
    reporting: about.reporting && (yield* findReporting(dialect)),
    clock: about.isDated && (yield* readClock(dialect)),
    nowMs: yield* readNowMs(dialect),
  }
}

function* findCredit(dialect: Dialect, reference: string): StoreStep<Facts['credit']> {
  const row = yield* rowOf(
    statement(
      dialect,
      (put) => `SELECT account_id, amount FROM ${dialect.credits} WHERE reference = ${put(reference)}`,
    ),
  )
  return row && { accountId: row['account_id'] as string, amountNanos: row['amount'] as bigint }
}

/** The state is locked: a server that starts meanwhile waits for what becomes of it. */
function* findReporting(dialect: Dialect): StoreStep<Facts['reporting']> {
  const state = yield* readUsageState(dialect, 'UPDATE')
  const { livingReplicas } = dialect
  const servers = livingReplicas === undefined ? [] : yield* rowsOf({ text: livingReplicas, values: [] })
  const names = servers.map(({ id, name }) => `${name} (${id})`)
  return { timeZone: state.timeZone, isRecorded: isRecorded(state), servers: names }
}

/** Writes what a change decided, in its transaction. Each engine posts credits itself. */
export function* make(dialect: Dialect, write: Exclude<BookWrite, { kind: 'post_credit' }>): StoreStep<void> {
  const { schema } = dialect
  switch (write.kind) {
    case 'insert_account': {
      const { id, name, state, createdMs } = write.account
      yield* rowsOf(insert(dialect, 'accounts', { id, name, state, revision: 0, created_ms: createdMs }))
      if (dialect.isShared) yield* rowsOf(insert(dialect, 'balances', { account_id: id }))
      return
    }
    case 'set_state':
      return yield* runAll([update(dialect, 'accounts', { state: write.state }, { id: write.accountId })])
    case 'set_name':
      return yield* runAll([update(dialect, 'accounts', { name: write.name }, { id: write.accountId })])
    case 'set_zone':
      return yield* rezone(dialect, { timeZone: write.timeZone })
    case 'set_spend':
      return yield* setSpend(dialect, write)
    case 'clear_spend':
      yield* lockAccount(dialect, write.accountId)
      return yield* runAll([
        statement(dialect, (put) => `DELETE FROM ${schema}.spends WHERE scope = ${put(write.scope)}`),
      ])
    case 'set_bounds':
      // No debit of the account is posted by what its keys were a moment ago.
      yield* lockAccount(dialect, write.accountId)
      return yield* runAll([...writeStatements(dialect, write)!, rearm(dialect, write.scope)])
    case 'post_audit': {
      const last = yield* first(selectAudit(dialect, { limit: 1 }))
      return yield* runAll([insertAudit(dialect, placeAudit(write.row, write.nowMs, last))])
    }
    default:
      return yield* runAll(writeStatements(dialect, write) ?? [])
  }
}
