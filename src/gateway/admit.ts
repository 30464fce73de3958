import { type ApiKey, StoreSilent } from '../accounts/account.ts'
import type { Admission, AdmissionRefusal, Entered } from '../accounts/admission.ts'
import type { Budget } from '../accounts/budget.ts'
import { formatCredits } from '../accounts/credit.ts'
import { dearestCallNanos, type Model, priceNanos } from '../catalog/model.ts'
import { type CacheWrites, holdPrices } from '../catalog/price-list.ts'
import { wirePlaces } from '../catalog/wire-names.ts'
import type { Config } from '../config/config.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import { type Exchange, mayCallTools } from './exchange.ts'
import type { CallRecord } from './record.ts'

/** Checks credit and the window before the body is read, if the store decides them so early. @throws GatewayError 402, 429, 500. */
export async function enter(admission: Admission, key: ApiKey): Promise<Entered> {
  const answer = await admission.enter(key).catch(explainSilence)
  if (answer.ok) return answer
  throw explain(answer, key)
}

/**
 * Returns the error that the client gets for one thrown after `enter`. Some stores decide credit and window only after the
 * body. Such a store is asked first, because its refusal goes before any fault of the body (ruling R1).
 */
export async function inOrder(entered: Entered, key: ApiKey, error: unknown): Promise<unknown> {
  // Only a GatewayError reaches the client in its own words; a bug needs no such order.
  if (!(error instanceof GatewayError)) return error
  const refused = await entered.judge().catch(explainSilence)
  return refused ? explain(refused, key) : error
}

/** Holds the estimated cost of the answer (ruling C2) and records it. @returns the release. @throws GatewayError 402, 429, 500. */
export async function takeHold(
  config: Config,
  key: ApiKey,
  entered: Entered,
  model: Model,
  exchange: Exchange,
  record: CallRecord,
): Promise<() => void> {
  const { holdOutputTokens } = config.billing
  const cap = exchange.outputTokensCap
  const usage = {
    inputTokens: exchange.inputTokensEstimate,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens: holdOutputTokens === 'cap' ? cap : Math.min(cap, holdOutputTokens * exchange.choices),
    reasoningTokens: 0,
    estimated: true,
  }
  const prices = holdPrices(model.prices, record.startedMs, [], writesOf(model, exchange))
  // The number of tool calls is not known in advance. One is assumed if the model may call tools at all (ruling C11).
  const callNanos = prices.calls && mayCallTools(exchange) ? dearestCallNanos(prices) : 0n
  const holdNanos = priceNanos(prices, usage) + callNanos
  const answer = await entered.admit(holdNanos).catch(explainSilence)
  if (!answer.ok) throw explain(answer, key)
  record.holdNanos = holdNanos
  return answer.release
}

/**
 * Whether a request may write into the cache of its provider, which costs more than plain input. On the messages wire it has
 * marks then; providers of the others write without being asked.
 */
function writesOf({ prices, wire }: Model, exchange: Exchange): CacheWrites {
  if (!prices.hasDearerWrites || (!wirePlaces[wire].cacheKey && !exchange.holds('cache_control'))) return 'none'
  return exchange.holds('1h') || exchange.holds('12h') ? 'long' : 'short'
}

/** A refusal of the admission as an error. A credit error names the account and its balance, but never its holds (ruling R13). */
function explain(refused: AdmissionRefusal, key: ApiKey): GatewayError {
  const { account } = key
  switch (refused.why) {
    case 'unwritable':
      return new GatewayError('internal_error', failureTexts.noLedger, { reason: 'ledger' })
    // A retry makes sense only if running requests hold the rest of the credit.
    case 'no_credit':
      return new GatewayError('insufficient_credits', texts.noCredit(account.name, refused.balanceNanos), {
        shouldRetry: false,
        reason: 'spent',
      })
    case 'all_held':
      return new GatewayError('insufficient_credits', texts.inUse(account.name, refused.balanceNanos), {
        shouldRetry: true,
        reason: 'held',
      })
    case 'budget_spent':
      return new GatewayError('insufficient_credits', texts.budgetSpent(key, refused), {
        shouldRetry: false,
        reason: 'budget_spent',
      })
    case 'budget_held':
      return new GatewayError('insufficient_credits', texts.budgetInUse(key, refused), {
        shouldRetry: true,
        reason: 'budget_held',
      })
    case 'busy':
      return new GatewayError('rate_limit_exceeded', failureTexts.serviceFull, { reason: 'busy' })
    case 'rate':
      return new GatewayError('rate_limit_exceeded', failureTexts.windowFull, {
        retryAfterSeconds: refused.retryAfterSeconds,
        reason: 'window',
      })
    case 'key_rate':
      return new GatewayError('rate_limit_exceeded', failureTexts.keyWindowFull, {
        retryAfterSeconds: refused.retryAfterSeconds,
        reason: 'key_window',
      })
  }
}

/** If the store does not answer, the request fails with an error of ours, and not for lack of credit (ruling C5). */
function explainSilence(error: Error): never {
  throw error instanceof StoreSilent ? new GatewayError('internal_error', failureTexts.silentAccounts) : error
}

const texts = {
  noCredit: (account: string, balanceNanos: bigint) =>
    `Account "${account}" has ${formatCredits(balanceNanos)} credits left: add credit and try again.`,
  inUse: (account: string, balanceNanos: bigint) =>
    `Account "${account}" has ${formatCredits(balanceNanos)} credits left, which its running requests may need: wait for them and try again, or add credit.`,
  budgetSpent: (key: ApiKey, { budget, renewsMs }: OfBudget) =>
    `${nameOf(key)} has spent its budget of ${sayBudget(budget)}: ${renewal(budget, renewsMs)}. For more ask who gave it to you.`,
  budgetInUse: (key: ApiKey, { budget, leftNanos }: OfBudget) =>
    `${nameOf(key)} has ${formatCredits(leftNanos)} credits left of its budget of ${sayBudget(budget)}, which its running requests may need: wait for them and try again.`,
}

type OfBudget = Extract<AdmissionRefusal, { budget: Budget }>

/** Names the key, not the account: the budget is the key's, and the account may still have credit (ruling R15). */
function nameOf({ label, prefix }: ApiKey): string {
  return label === undefined ? `The API key ${prefix}…` : `The API key "${label}" (${prefix}…)`
}

function sayBudget({ nanos, per }: Budget): string {
  return `${formatCredits(nanos)} credits${per === undefined ? '' : ` a ${per}`}`
}

function renewal({ per }: Budget, renewsMs: number | undefined): string {
  if (per === undefined) return 'it does not renew'
  if (renewsMs === undefined) return `it renews with the next ${per}`
  return `it renews at ${new Date(renewsMs).toISOString().replace('.000', '')}`
}
