import type { LimitReason } from '../errors.ts'
import type { Explanation } from './shapes.ts'

/* Texts for the person whose request was refused or failed: why, and what to do (ruling Y22). */

const advice = (why: string, cure: string) => ({ why, cure })

const again = 'Send it again.'
const operator = 'Ask the operator of the gateway.'
const busy = advice('The gateway had too much to do.', 'Send it again in a moment.')

type AdviceByName = Readonly<Record<string, ReturnType<typeof advice>>>

/** Reasons of a 402 or 429 about which an owner can ask. A request with `failed_auth` has no owner. */
export type OwnReason = Exclude<LimitReason, 'failed_auth'>

export const byReason: AdviceByName & Record<OwnReason, AdviceByName[string]> = {
  spent: advice('The account has no credit left.', 'Ask the operator of the gateway to add credit.'),
  held: advice(
    'Running requests may need the credit that is left.',
    'Wait until they are over, or ask for more credit.',
  ),
  account_budget_spent: advice('The account has spent its budget.', 'Wait until it renews, or ask for a larger one.'),
  account_budget_held: advice(
    'Running requests may need what is left of the budget of the account.',
    'Wait until they are over.',
  ),
  budget_spent: advice('This key has spent its budget.', 'Wait until it renews, or ask who gave you the key.'),
  budget_held: advice('Running requests may need what is left of the budget of this key.', 'Wait until they are over.'),
  person_budget_spent: advice('Your own budget is spent.', 'Wait until it renews, or ask for a larger one.'),
  person_budget_held: advice(
    'Running requests of yours may need what is left of your own budget.',
    'Wait until they are over.',
  ),
  window: advice(
    'The account made too many requests in this minute.',
    'Send fewer at once: a minute later it goes on.',
  ),
  key_window: advice(
    'This key made too many requests in this minute.',
    'Send fewer at once: a minute later it goes on.',
  ),
  person_window: advice('You made too many requests in this minute.', 'Send fewer at once: a minute later it goes on.'),
  upstream: advice('The model had no capacity.', 'Send it again in a moment, or name another model.'),
  busy,
  bodies: busy,
  counter: busy,
}

/** For each error code: why the request failed, and what the person can do. */
const byCode: AdviceByName = {
  insufficient_credits: byReason.spent,
  rate_limit_exceeded: byReason.upstream,
  account_suspended: advice('The account is suspended.', operator),
  model_not_found: advice('There is no such model, or this key may not name it.', 'Name one of the page Models.'),
  internal_error: advice(
    'The gateway had an error.',
    `${again} If it happens again, give the operator the request id.`,
  ),
  upstream_error: advice('The model failed.', `${again} If it happens again, name another model.`),
  no_upstream_account: advice('The model has no capacity now.', 'Send it again later, or name another model.'),
  request_too_large: advice('The request was too large.', 'Send less text, or fewer images and files, in one request.'),
}

/** The advice by outcome, for requests whose reason and code have no advice of their own. */
const byOutcome: AdviceByName = {
  client_abort: advice('The client left before the answer was complete.', 'What came until then is billed.'),
  client_stall: advice('The client stopped reading the answer.', 'Look at the connection of the client.'),
  client_timeout: advice('The client did not send its whole request in time.', again),
  upstream_cut: byCode['upstream_error']!,
  upstream_stall: byCode['upstream_error']!,
  upstream_error: byCode['upstream_error']!,
  shutdown: advice('The gateway was stopped before the answer was complete.', again),
  internal_error: byCode['internal_error']!,
}

const none = { why: null, cure: null }

/** Returns why a request failed, and what its sender can do. Both texts are null if the request was answered. */
export function adviceOf({ outcome, code, reason }: Pick<Explanation['settlement'], 'outcome' | 'code' | 'reason'>): {
  why: string | null
  cure: string | null
} {
  if ((outcome ?? 'ok') === 'ok') return none
  const known = byReason[reason ?? ''] ?? byCode[code ?? ''] ?? byOutcome[outcome!]
  return known ?? advice('The request was not as the gateway or the model takes it.', 'Change what the message names.')
}
