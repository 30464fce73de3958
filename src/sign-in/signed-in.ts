import type { Books } from '../accounts/books.ts'
import type { SignedIn, SignInRow } from '../accounts/sign-in/rows.ts'
import type { SignInSettings } from '../config/config.ts'
import { mapPerson } from './mapping.ts'
import type { PersonIdentity, Provider, Renewal, RenewalBase } from './provider.ts'
import type { Tickets } from './tickets.ts'

/** A signed-in person, with the rights of the rule that matched. @property account undefined only for operators */
export type RuledPerson = Omit<SignedIn, 'account'> & { account: string | undefined }

const kind = 'provider'

/**
 * The shortest time between the refreshes of a session at the provider, in ms. An earlier refresh waits, because the
 * provider limits how often the gateway may ask for all people together. With the time that the provider has for its
 * answer, this is shorter than `claimMs`.
 */
const pauseMs = 1_000

/** Finds the account and role of a person by the rules of sign-in. @returns a text for the person if no rule matches */
export function signInBy({ rules }: SignInSettings, identity: PersonIdentity, tickets: Tickets): RuledPerson | string {
  const found = mapPerson(rules, identity)
  if ('why' in found) return found.text
  const { account, role, models, budget, requestsPerMinute } = found.rule
  const { issuer, subject, email, name, groupsFrom, refreshToken } = identity
  const base: RenewalBase | undefined = refreshToken === undefined ? undefined : { subject, groupsFrom, refreshToken }
  const sealed = base && tickets.seal(kind, base)
  return { issuer, subject, email, name, account, role, models, budget, requestsPerMinute, sealed }
}

/** Whether an account pays for the person. */
export function isPaid(person: RuledPerson): person is SignedIn {
  return person.account !== undefined
}

/** Whether a session may continue; `settleRefresh` acts on this answer. @property why the reason, for the log */
type Permission =
  | { kind: 'yes'; signedIn: SignedIn }
  | { kind: 'no'; why: string; isUnasked?: boolean }
  | { kind: 'silent'; why: string }

/**
 * Makes a function that asks the provider within 3 s whether a person may continue, and applies the current rules. Only
 * the server that refreshes the session may call the function, because most providers accept a refresh token only once.
 * The function never throws.
 */
export function createAskAgain(
  settings: () => SignInSettings,
  provider: Pick<Provider, 'renew'>,
  tickets: Tickets,
  nowMs: () => number,
) {
  return async (
    { id, sealed, askedMs, refreshedMs }: SignInRow,
    books: Pick<Books, 'keepAnswer' | 'endSession'>,
  ): Promise<Permission> => {
    const base = tickets.open<RenewalBase>(kind, sealed)
    if (!base) {
      // Without the provider's refresh token, the provider cannot be asked. So the person must sign in again when the
      // time `offline` of the configuration has passed.
      const isOver = nowMs() >= askedMs + settings().offlineMs
      const why = 'there is no token of the provider, or seal_key is another one'
      return isOver ? { kind: 'no', why, isUnasked: true } : { kind: 'silent', why }
    }
    const leftMs = refreshedMs + pauseMs - nowMs()
    // A longer rest means that the clock was set back.
    if (leftMs > 0 && leftMs <= pauseMs) await new Promise((resolve) => setTimeout(resolve, leftMs))
    const renewal = await provider.renew(base)
    if (renewal.kind === 'silent') void renewal.late?.then((late) => settleLate(id, judge(late), books)).catch(() => {})
    return judge(renewal)
  }

  function judge(renewal: Renewal): Permission {
    if (renewal.kind !== 'yes') return { kind: renewal.kind, why: renewal.why }
    const person = signInBy(settings(), renewal.identity, tickets)
    if (typeof person === 'string') return { kind: 'no', why: person }
    if (!isPaid(person)) return { kind: 'no', why: `the role ${person.role} has no account any more` }
    return { kind: 'yes', signedIn: person }
  }
}

/** Applies a late response of the provider to a session that has continued in the meantime. */
async function settleLate(
  id: string,
  word: Permission,
  books: Pick<Books, 'keepAnswer' | 'endSession'>,
): Promise<void> {
  if (word.kind === 'yes') await books.keepAnswer(id, word.signedIn)
  else if (word.kind === 'no') await books.endSession({ id }, 'provider')
}
