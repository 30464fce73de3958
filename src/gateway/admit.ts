import { type ApiKey, authenticate, hasEnded, type LiveBounds, StoreSilent } from '../accounts/account.ts'
import type { Admission, AdmissionRefusal, Admitted, Entered } from '../accounts/admission.ts'
import { type Budget, renewsAt } from '../accounts/budget.ts'
import { type Calendar, createCalendar } from '../accounts/calendar.ts'
import { formatCredits } from '../accounts/credit.ts'
import type { WindowFigures } from '../accounts/limits.ts'
import { isOfSession } from '../accounts/sign-in/tokens.ts'
import { askedTiers } from '../catalog/base-service.ts'
import { dearestCallNanos, type Model, priceNanos, type Tier } from '../catalog/model.ts'
import { holdPrices } from '../catalog/price-list.ts'
import type { Config } from '../config/config.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import { type LimitReason, limitReasons } from '../limit-reasons.ts'
import { wires } from '../wires/wires.ts'
import type { Call } from './call.ts'
import type { ChainWalk } from './chain.ts'
import { type Exchange, mayCallTools, type UpstreamRequests } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import type { CallRecord } from './record.ts'

/**
 * Finds the key of a request (spec 5, rulings R4, R7, R16). A request with a known key is never throttled here.
 * @throws GatewayError 401, 429; 500 if the key is not in memory and the store does not answer (ruling C5). A 500 does
 *   not count as a failing request.
 */
export async function identify(
  gateway: Gateway,
  call: Pick<Call, 'header' | 'ip'>,
  record: CallRecord,
): Promise<ApiKey> {
  const credentials = { authorization: call.header('authorization'), xApiKey: call.header('x-api-key') }
  const { directory, throttle } = gateway
  const isThrottled = () => throttle.isThrottled(call.ip)
  const asking = { directory, nowMs: gateway.nowMs(), isThrottled, readAccess: gateway.readAccess }
  const found = await authenticate(asking, credentials).catch(explainSilentKeys)
  if (typeof found === 'object') return welcome(gateway, record, found.key)
  if (found === 'ended') throw new GatewayError('invalid_api_key', texts.sessionEnded, { reason: 'session' })
  if (found === 'expired') throw new GatewayError('invalid_api_key', texts.tokenExpired, { reason: 'session' })
  const { throttled, retryAfterSeconds } = await throttle.fail(call.ip)
  if (throttled) throw new GatewayError('too_many_failed_auth', failureTexts.throttled, { retryAfterSeconds })
  throw new GatewayError('invalid_api_key', found === 'missing' ? texts.missingKey : texts.unknownKey)
}

/**
 * Finds the key of a signed-in person. @throws GatewayError 401, also for an expired key; 500 if the store is silent
 */
export async function welcomeDigest(gateway: Gateway, record: CallRecord, digest: string): Promise<ApiKey> {
  const { directory } = gateway
  const key = directory.findKnownKey(digest) ?? (await directory.findKey(digest).catch(explainSilentKeys))
  if (!key || hasEnded(key.expiresMs, gateway.nowMs())) throw new GatewayError('invalid_api_key', texts.unknownKey)
  return welcome(gateway, record, key)
}

function welcome(gateway: Gateway, record: CallRecord, key: ApiKey): ApiKey {
  record.keyId = key.id
  record.keyPrefix = key.prefix
  if (key.label !== undefined) record.keyLabel = key.label
  if (key.bounds !== undefined) record.bounds = key.bounds
  if (key.personBounds !== undefined) record.personBounds = key.personBounds
  noteAccount(gateway, record, key)
  gateway.directory.touch(key)
  return key
}

/** Records the account. @throws GatewayError 401 `account_suspended` unless the account is active */
export function noteAccount(gateway: Gateway, record: CallRecord, { account }: ApiKey): void {
  record.account = account.name
  record.accountId = account.id
  if (account.state !== 'active' || gateway.barred.has(account.id))
    throw new GatewayError('account_suspended', texts.suspended)
}

function explainSilentKeys(error: Error): never {
  throw error instanceof StoreSilent
    ? new GatewayError('internal_error', failureTexts.silentStore, { reason: 'store' })
    : error
}

/**
 * Checks credit and the rate window. Some stores check both later, after the body is read.
 * @throws GatewayError 402, 429, 500
 */
export async function enter(admission: Admission, key: ApiKey): Promise<Entered> {
  const answer = await admission.enter(key).catch(explainSilence)
  if (answer.ok) return answer
  throw explain(answer, key)
}

/**
 * Returns the error that the client gets if `error` was thrown after `enter`. Some stores check the credit and the rate
 * window only after the body was read. Such a store is asked now, because its refusal takes precedence over a fault of
 * the body (ruling R1).
 */
export async function inOrder(entered: Entered, key: ApiKey, error: unknown): Promise<unknown> {
  // Any other error is a bug. The client gets a fixed text for a bug, whatever the store would answer.
  if (!(error instanceof GatewayError)) return error
  const refused = await entered.judge().catch(explainSilence)
  return refused ? explain(refused, key) : error
}

/**
 * Holds the estimated cost of the request, which means that this credit is set aside and recorded (ruling C2). For a
 * fallback chain, the cost at its dearest model is held (ruling Y23).
 * @param at as in `holdOf`
 * @returns a function that releases the hold. @throws GatewayError 402, 429, 500
 */
export async function takeHold(
  config: Config,
  key: ApiKey,
  entered: Entered,
  { model, asking, chain }: { model: Model; asking: UpstreamRequests; chain?: ChainWalk | undefined },
  record: CallRecord,
  at: number,
): Promise<Admitted['release']> {
  const own = holdOf(config, model, asking.exchange, at)
  const holdNanos = chain && chain.dearestNanos > own ? chain.dearestNanos : own
  const answer = await entered.admit(holdNanos).catch(explainSilence)
  if (!answer.ok) throw explain(answer, key)
  record.holdNanos = holdNanos
  return answer.release
}

/**
 * The estimated cost of a request's input and answer at a model, in nano-credits (ruling C2).
 * @param at the start of the request by the store's clock, in Unix milliseconds (ruling Y15)
 */
export function holdOf({ billing }: Pick<Config, 'billing'>, model: Model, exchange: Exchange, at: number): bigint {
  const { holdOutputTokens } = billing
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
  const prices = holdPrices(model.prices, at, servedBy(model, exchange), exchange.cacheWrites)
  // The number of tool calls is not known in advance. One is assumed if the model may call tools at all (ruling C11).
  const callNanos = prices.calls && mayCallTools(exchange) ? dearestCallNanos(prices) : 0n
  return priceNanos(prices, usage) + callNanos
}

/**
 * Returns the tiers that may serve a request, besides the base tier. Upstreams may use the expected tiers unasked. The
 * request may ask for others.
 */
function servedBy({ expectedTiers, wire }: Model, { service }: Exchange): readonly Tier[] {
  return service === undefined ? expectedTiers : [...expectedTiers, ...askedTiers(service, wire)]
}

/** Makes the error for a refusal. A credit error names the account and its balance, never its holds (ruling R13). */
function explain(refused: AdmissionRefusal, key: ApiKey): GatewayError {
  if ('budget' in refused) return lacking(texts[refused.why](key, refused), refused.why)
  if ('balanceNanos' in refused) return lacking(texts[refused.why](key.account.name, refused.balanceNanos), refused.why)
  if ('retryAfterSeconds' in refused) {
    const { why: reason, retryAfterSeconds } = refused
    return new GatewayError('rate_limit_exceeded', limitReasons[reason].message, { retryAfterSeconds, reason })
  }
  switch (refused.why) {
    case 'unwritable':
      return new GatewayError('internal_error', failureTexts.noLedger, { reason: 'ledger' })
    case 'busy':
      return new GatewayError('rate_limit_exceeded', failureTexts.serviceFull, { reason: 'busy' })
  }
}

/** Makes the error for a lack of credit. A retry makes sense only if running requests hold the rest of the credit. */
function lacking(message: string, reason: LimitReason): GatewayError {
  return new GatewayError('insufficient_credits', message, { shouldRetry: reason.endsWith('held'), reason })
}

/** If the store does not answer, throws `internal_error`, never an error about lack of credit (ruling C5). */
function explainSilence(error: Error): never {
  throw error instanceof StoreSilent ? new GatewayError('internal_error', failureTexts.silentAccounts) : error
}

const texts = {
  missingKey: 'An API key is required: send it as authorization: Bearer, or in x-api-key.',
  unknownKey: 'The API key is not valid: check it for typing errors, or make a new one.',
  sessionEnded: 'Your session has ended: sign in again, with /login in Claude Code or triwire login elsewhere.',
  tokenExpired:
    'The token has expired: triwire token prints a new one. If that fails, sign in again, with /login in Claude Code or triwire login elsewhere.',
  suspended: 'The account is not active: ask its operator to activate it.',
  spent: (account: string, balanceNanos: bigint) =>
    `Account "${account}" has ${formatCredits(balanceNanos)} credits left: add credit and try again.`,
  held: (account: string, balanceNanos: bigint) =>
    `Account "${account}" has ${formatCredits(balanceNanos)} credits left, which its running requests may need: wait for them and try again, or add credit.`,
  budget_spent: (key: ApiKey, refused: OfBudget) =>
    `${isSpent(nameOf(key), refused)} Ask the person who gave it to you for more.`,
  budget_held: (key: ApiKey, refused: OfBudget) => isHeld(nameOf(key), refused),
  account_budget_spent: ({ account }: ApiKey, refused: OfBudget) =>
    `${isSpent(`Account "${account.name}"`, refused)} Ask its operator for more.`,
  account_budget_held: ({ account }: ApiKey, refused: OfBudget) => isHeld(`Account "${account.name}"`, refused),
  person_budget_spent: (key: ApiKey, refused: OfBudget) =>
    `${isSpent(ownerOf(key), refused, 'their')} Ask the operator of the account for more.`,
  person_budget_held: (key: ApiKey, refused: OfBudget) => isHeld(ownerOf(key), refused, 'their'),
}

function isSpent(spender: string, { budget, renewsMs }: OfBudget, whose: 'its' | 'their' = 'its'): string {
  return `${spender} has spent ${whose} budget of ${sayBudget(budget)}: ${renewal(budget, renewsMs)}.`
}

function isHeld(spender: string, { budget, leftNanos }: OfBudget, whose: 'its' | 'their' = 'its'): string {
  return `${spender} has ${formatCredits(leftNanos)} credits left of ${whose} budget of ${sayBudget(budget)}, which ${whose} running requests may need: wait for them and try again.`
}

type OfBudget = Extract<AdmissionRefusal, { budget: Budget }>

/**
 * Names the key and not the account, because the budget belongs to the key. The account may still have credit (ruling
 * R15).
 */
function nameOf({ label, prefix }: ApiKey): string {
  return label === undefined ? `The API key ${prefix}…` : `The API key "${label}" (${prefix}…)`
}

/** Names the person by their key, because no message contains a person's name (ruling Y21). */
function ownerOf(key: ApiKey): string {
  const name = nameOf(key)
  return `The person with ${name[0]!.toLowerCase()}${name.slice(1)}`
}

function sayBudget({ nanos, per }: Budget): string {
  return `${formatCredits(nanos)} credits${per === undefined ? '' : ` a ${per}`}`
}

function renewal({ per }: Budget, renewsMs: number | undefined): string {
  if (per === undefined) return 'it does not renew'
  if (renewsMs === undefined) return `it renews with the next ${per}`
  return `it renews at ${new Date(renewsMs).toISOString().replace('.000', '')}`
}

/** The figures of an account that the headers of a response show (ruling R13). */
export type ToldStanding = {
  window: WindowFigures | undefined
  /** The settled balance in credits, as a decimal text. Holds are not deducted. */
  balance: string
}

/** Returns an account's rate window and balance for headers. Undefined if the store cannot give them without a wait. */
export function standingOf(
  { admission }: Gateway,
  accountId: string,
  bounds: LiveBounds | undefined,
  person?: LiveBounds | undefined,
): ToldStanding | undefined {
  const standing = admission.look(accountId, bounds, person)
  return standing && { window: standing.window, balance: formatCredits(standing.balanceNanos) }
}

/**
 * How much of a person's budget is spent. The person's coding agent shows these figures.
 * @property share the spent part of the budget; 0 if nothing is spent, 1 if all of it is
 * @property resetsMs when the budget renews, in Unix milliseconds; undefined if never
 */
export type PersonSpend = { share: number; resetsMs: number | undefined }

/** The calendar of each configuration. It is in the reporting time zone, which a reload may change. */
const calendars = new WeakMap<Config, Calendar>()

/**
 * Finds how much a signed-in person has spent. Undefined if the person has no budget, or if the agents of the wire do
 * not show spend.
 */
export function spendOf(gateway: Gateway, { wire, keyPrefix = '', personBounds }: CallRecord): PersonSpend | undefined {
  const budget = personBounds?.budget
  if (!budget || !wire || !wires[wire].client.showsSpend || !isOfSession(keyPrefix)) return undefined
  const { config } = gateway.snapshots.current
  const calendar = calendars.get(config) ?? createCalendar(config.reporting)
  calendars.set(config, calendar)
  const leftNanos = gateway.admission.lookBudget({ ...personBounds, budget })
  const share = Number(((budget.nanos - leftNanos) * 10_000n) / budget.nanos) / 10_000
  return { share: Math.max(0, share), resetsMs: renewsAt(calendar, budget, personBounds.spend, gateway.nowMs()) }
}
