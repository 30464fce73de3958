import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Dialect, Statement } from '../sql/dialect.ts'
import type { Row, StoreStep } from '../sql/step.ts'
import { readTogether, transact } from './open.ts'

/** The driver of SQLite: answers a step at once. */
export type Run = <T>(step: StoreStep<T>) => T

/** Statements of changing texts are made too, so the oldest must go. */
const statementsMax = 200

/** @param nowMs Unix milliseconds */
export function createDialect(nowMs: () => number = Date.now): Dialect {
  return {
    schema: 'main',
    isShared: false,
    parameter: (n) => `?${n}`,
    accounts: 'SELECT a.id, a.name, a.state, a.balance, a.created_ms FROM main.accounts a',
    ends: '(SELECT id AS account_id, balance, seq FROM main.accounts)',
    credits: 'main.entries',
    creditEntry: 'main.entries e WHERE e.reference',
    isOfRequest: (put, requestId) => `e.request_id = ${put(requestId)}`,
    now: (put) => put(nowMs()),
    // Its text is always the same, and prepared.
    rowsMax: 1,
  }
}

export function createRun(db: DatabaseSync): Run {
  const statements = new Map<string, StatementSync>()
  return run

  function run<T>(step: StoreStep<T>): T {
    let turn = step.next()
    while (!turn.done) {
      const asked = turn.value
      turn = step.next('text' in asked ? ask(asked) : together(asked.step, asked.isWriting))
    }
    return turn.value
  }

  function ask({ text, values }: Statement): Row[] {
    const statement = statements.get(text) ?? db.prepare(text)
    if (statements.size >= statementsMax) statements.clear()
    statements.set(text, statement)
    return statement.all(...values)
  }

  function together<T>(step: StoreStep<T>, isWriting: boolean): T {
    if (db.isTransaction) return run(step)
    return (isWriting ? transact : readTogether)(db, () => run(step))
  }
}
