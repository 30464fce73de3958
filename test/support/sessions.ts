import assert from 'node:assert/strict'
import { type Books, createBooks } from '../../src/accounts/books.ts'
import type { SignedIn, SignInRow } from '../../src/accounts/sign-in/rows.ts'
import { createTokens } from '../../src/accounts/sign-in/tokens.ts'
import { readSealKey } from '../../src/host/seal-key.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { atEnd } from './at-end.ts'
import type { TestGateway } from './gateway.ts'

export const hourMs = 3_600_000
export const lives = { accessMs: hourMs, idleMs: 720 * hourMs, absoluteMs: 2_160 * hourMs, offlineMs: 8 * hourMs }

/** Opens the books of a gateway's store with the gateway's clock, like another process. */
export function booksOf({ storePath, nowMs }: TestGateway): Books {
  const store = openStore(storePath, { nowMs })
  atEnd(() => store.close())
  return createBooks(store, nowMs, { actor: 'sign_in' })
}

/** Creates the tokens of a gateway, with the seal key that it made at its start. */
export function tokensOf({ storePath }: TestGateway) {
  return createTokens(readSealKey(undefined, { engine: 'sqlite', path: storePath, shown: storePath } as never))
}

export type TestSession = { access: string; refresh: string; session: SignInRow; books: Books }

/** Signs a person in without a browser, by approving the grant in the books. */
export async function openTestSession(gateway: TestGateway, more: Partial<SignedIn> = {}): Promise<TestSession> {
  const books = booksOf(gateway)
  const { id, code } = await books.beginGrant({ kind: 'device', agent: 'claude_code', address: '192.0.2.9' })
  await books.decideGrant(id, {
    issuer: 'https://idp.example',
    subject: 'u',
    account: 'tester',
    role: 'member',
    ...more,
  })
  const issued = await books.pollGrant(code, lives)
  assert.ok('session' in issued)
  const tokens = tokensOf(gateway).issue(issued.secret!, issued.generation, issued.accessExpiresMs)
  return { ...tokens, session: issued.session, books }
}
