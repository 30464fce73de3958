/*
 * Every reason for which a limit refuses a request with 402 or 429, with the texts that explain it. Metrics, the log
 * and explanations use the names. Only explanations use `upstream` and `failed_auth`. The console imports this file
 * too, so it imports nothing.
 */

/**
 * The texts of a reason.
 * @property message the error text of a full rate window, with the words of `failureTexts` (ruling U10)
 * @property said the text for operators, in the console
 * @property advice why the request was refused and what to do, for the person who sent it (ruling Y22). A request with
 *   `failed_auth` has no owner who could read it
 */
type LimitTexts = {
  message?: string
  said: string
  advice?: { why: string; cure: string }
}

const ended = 'Wait until they are over.'
const fewer = 'Send fewer at once: a minute later it goes on.'
const busy = { why: 'The gateway had too much to do.', cure: 'Send it again in a moment.' }

const reasons = {
  spent: {
    said: 'the balance of the account is spent',
    advice: { why: 'The account has no credit left.', cure: 'Ask the operator of the gateway to add credit.' },
  },
  held: {
    said: 'running requests hold the rest of the balance',
    advice: {
      why: 'Running requests may need the credit that is left.',
      cure: 'Wait until they are over, or ask for more credit.',
    },
  },
  account_budget_spent: {
    said: 'the budget of the account is spent',
    advice: { why: 'The account has spent its budget.', cure: 'Wait until it renews, or ask for a larger one.' },
  },
  account_budget_held: {
    said: 'running requests hold the rest of the budget of the account',
    advice: { why: 'Running requests may need what is left of the budget of the account.', cure: ended },
  },
  person_budget_spent: {
    said: 'the budget of the person over all their keys is spent',
    advice: { why: 'Your own budget is spent.', cure: 'Wait until it renews, or ask for a larger one.' },
  },
  person_budget_held: {
    said: 'running requests hold the rest of the budget of the person',
    advice: { why: 'Running requests of yours may need what is left of your own budget.', cure: ended },
  },
  budget_spent: {
    said: 'the budget of the key is spent',
    advice: { why: 'This key has spent its budget.', cure: 'Wait until it renews, or ask who gave you the key.' },
  },
  budget_held: {
    said: 'running requests hold the rest of the budget of the key',
    advice: { why: 'Running requests may need what is left of the budget of this key.', cure: ended },
  },
  window: {
    message: 'The account has made too many requests in this minute (rate limit): try again after retry-after seconds.',
    said: 'the account made too many requests in this minute',
    advice: { why: 'The account made too many requests in this minute.', cure: fewer },
  },
  person_window: {
    message:
      'The person with this API key has made too many requests with all their keys in this minute (rate limit): try again after retry-after seconds.',
    said: 'the person made too many requests in this minute',
    advice: { why: 'You made too many requests in this minute.', cure: fewer },
  },
  key_window: {
    message:
      'This API key has made too many requests in this minute (rate limit): try again after retry-after seconds.',
    said: 'the key made too many requests in this minute',
    advice: { why: 'This key made too many requests in this minute.', cure: fewer },
  },
  upstream: {
    said: 'the provider is at its limit',
    advice: { why: 'The model had no capacity.', cure: 'Send it again in a moment, or name another model.' },
  },
  busy: { said: 'the gateway is at its limit', advice: busy },
  bodies: { said: 'the gateway has no memory for more bodies', advice: busy },
  counter: { said: 'too many tokens are being counted', advice: busy },
  failed_auth: { said: 'too many wrong keys came from this address' },
} as const satisfies Record<string, LimitTexts>

export type LimitReason = keyof typeof reasons

export const limitReasons: typeof reasons & Readonly<Record<string, LimitTexts | undefined>> = reasons

/** The reasons as the document of the API explains them. */
export const reasonsText =
  'for a 402: the balance is `spent`, or `held` for running requests; or a budget is, of the account (`account_budget_spent`, `account_budget_held`), of the person (`person_budget_spent`, `person_budget_held`) or of the key (`budget_spent`, `budget_held`); for a 429: the rate limit of the account (`window`), the person (`person_window`) or the key (`key_window`), the provider (`upstream`), or the gateway (`busy`, `bodies`, `counter`, `failed_auth`)'
