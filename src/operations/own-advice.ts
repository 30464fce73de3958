import { limitReasons } from '../limit-reasons.ts'
import type { Explanation } from './shapes.ts'

/* Texts for the person whose request was refused or failed: why, and what to do (ruling Y22). */

const advice = (why: string, cure: string) => ({ why, cure })

const again = 'Send it again.'
const operator = 'Ask the operator of the gateway.'

type AdviceByName = Readonly<Record<string, ReturnType<typeof advice>>>

/** For each error code: why the request failed, and what the person can do. */
const byCode: AdviceByName = {
  insufficient_credits: limitReasons.spent.advice,
  rate_limit_exceeded: limitReasons.upstream.advice,
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
  const known = limitReasons[reason ?? '']?.advice ?? byCode[code ?? ''] ?? byOutcome[outcome!]
  return known ?? advice('The request was not as the gateway or the model takes it.', 'Change what the message names.')
}
