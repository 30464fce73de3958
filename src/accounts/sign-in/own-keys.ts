import { hasEnded } from '../account.ts'
import { BookError } from '../book-error.ts'
import type { IssuedKey, KeyRow } from '../book-rows.ts'
import type { BookChange, BookWrite } from '../book-rules.ts'
import { beginSpend, checkLabel, issueKey } from '../book-rules.ts'
import type { Calendar } from '../calendar.ts'
import { ownKeyMark, type SignInFacts } from './rows.ts'

/*
 * Keys that people make for agents that cannot run a command to get a token (ruling Y20). Their labels begin with a
 * mark. Such a key ends seven days after the identity provider last confirmed the person. A later confirmation makes an
 * expired key valid again. If the provider rejects the person, the key stops working at once.
 */

const dayMs = 86_400_000
const ownKeyMs = 7 * dayMs

/** How many valid keys for agents a person may have at most in one account. */
export const ownKeysMax = 20

/**
 * Makes a key with the person, the account and the limits of a session. A budget begins with nothing spent.
 * @param name the name of the agent and its machine @param calendar of the reporting zone, because budgets follow its
 *   days
 * @returns `unconfirmed` if the provider's last confirmation is too old; `many` if the person has `ownKeysMax` keys
 * @throws BookError `no_session`, `label_invalid`, `label_secret`
 */
export function createOwnKey(
  sessionKeyId: string,
  name: string,
  calendar: Calendar,
): BookChange<IssuedKey | 'unconfirmed' | 'many'> {
  return {
    about: { signIn: { keyId: sessionKeyId } },
    decide(facts) {
      const { signIn: found, nowMs } = facts
      if (!found || found.signIn.endedMs !== undefined) throw new BookError('no_session', sessionKeyId)
      const { signIn, key, ownKeys } = found
      const ownExpiresMs = signIn.askedMs + ownKeyMs
      if (hasEnded(ownExpiresMs, nowMs)) return { writes: [], result: 'unconfirmed' }
      if (ownKeys.filter(({ expiresMs }) => !hasEnded(expiresMs, nowMs)).length >= ownKeysMax)
        return { writes: [], result: 'many' }
      const { accountId } = signIn
      const bounds = { ...key.bounds }
      const label = ownKeyMark + name
      checkLabel(label, accountId)
      const { write, issued } = issueKey({ accountId, label, ownExpiresMs, bounds }, nowMs)
      const { budget } = bounds
      const writes = [write, ...(budget ? beginSpend(accountId, issued.id, budget, calendar, facts) : [])]
      const after = { account: accountId, prefix: issued.prefix, label, person: signIn.personId, session: signIn.id }
      return { writes, result: issued, trail: { operation: 'key.create', object: issued.id, after } }
    },
  }
}

/** Extends a person's own keys after the provider has confirmed the person. A key is extended once a day at most. */
export function confirmOwnKeys({ ownKeys }: SignInFacts, nowMs: number): BookWrite[] {
  const isDue = (key: KeyRow) =>
    key.expiresMs !== undefined && !isFixed(key) && key.expiresMs < nowMs + ownKeyMs - dayMs
  return ownKeys.filter(isDue).map((key) => setEnd(key, nowMs + ownKeyMs))
}

/**
 * Ends a person's own keys, because the provider no longer confirms the person. A later confirmation makes them valid
 * again, except keys whose expiry is fixed (`isFixed`).
 */
export function pauseOwnKeys({ ownKeys }: SignInFacts, nowMs: number): BookWrite[] {
  return ownKeys.flatMap((key) => (hasEnded(key.expiresMs, nowMs) ? [] : [setEnd(key, nowMs)]))
}

function setEnd(key: KeyRow, endMs: number): BookWrite {
  const { accountId, id: keyId } = key
  return {
    kind: 'set_key',
    accountId,
    keyId,
    fields: { expiresMs: endMs, ...(!isFixed(key) && { ownExpiresMs: endMs }) },
  }
}

/**
 * Whether the expiry of a key is fixed, so that answers of the provider do not move it. A rotated key expires with its
 * grace period. If an operator has made a key expire earlier, this expiry stays.
 */
function isFixed({ expiresMs, ownExpiresMs }: KeyRow): boolean {
  return expiresMs !== ownExpiresMs
}
