import assert from 'node:assert/strict'
import type { Books } from '../../src/accounts/books.ts'
import { utc } from '../../src/accounts/calendar.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import { NeedWatch } from '../../src/live/needs.ts'
import type { TestStore } from './engines.ts'

/** A server's list of its store, at a time that the test turns. */
export function watchNeeds(store: Books & Partial<Pick<TestStore, 'turn'>>, startMs: number) {
  const now = { ms: startMs }
  const config = { catalog: { entries: [] }, reporting: utc, tls: undefined, adminTls: undefined }
  const gateway = {
    nowMs: () => now.ms,
    clockMs: () => now.ms,
    snapshots: { current: { pool: { list: () => [] }, config } },
    ledger: { whyBlocked: () => undefined, backlog: () => ({ blockedAccounts: 0 }) },
    lastAnswers: {},
  } as unknown as Gateway
  const needs = new NeedWatch({
    ...{ gateway, isTelling: false, reportBug: assert.ifError, books: async () => store, listWebhooks: () => [] },
    tellClock: () => null,
  })
  return {
    async turn(ms: number) {
      now.ms = ms
      await store.turn?.(ms)
    },
    async texts() {
      await needs.look()
      return (await needs.list()).map(({ text }) => text)
    },
    async rules() {
      await needs.look()
      return (await needs.list()).map(({ rule }) => rule)
    },
  }
}
