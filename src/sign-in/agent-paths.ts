import { StoreSilent } from '../accounts/account.ts'
import type { Books } from '../accounts/books.ts'
import { type Budget, neverMs, renewsAt, spentAt } from '../accounts/budget.ts'
import type { Calendar } from '../accounts/calendar.ts'
import { createWindows } from '../accounts/limits.ts'
import type { ApiAnswer } from '../admin/answer.ts'
import type { SideRequest } from '../admin/side.ts'
import type { Config } from '../config/config.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import { identify } from '../gateway/admit.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { wires } from '../wires/wires.ts'
import { oauthAnswer } from './oauth.ts'
import { tellCapped, tellFree } from './usage.ts'

/* Paths that agents use for discovery, settings, telemetry and spending (ruling Y19). Model paths are elsewhere. */

type AgentPathParts = {
  gateway: Gateway
  books(): Promise<Books>
  /** The calendar of the reporting zone. */
  calendar: Calendar
  config(): Config
  baseOf(request: SideRequest): string
}

/** The largest body of telemetry, in bytes (ruling Y19). */
const telemetryBytesMax = 5 * 1_048_576

const largeTelemetry = () =>
  new GatewayError('request_too_large', `The telemetry is larger than ${telemetryBytesMax} bytes.`)

const quarterMs = 900_000

/** How often a key may ask for its spending in a minute. Each request may read the ledger. */
const usagesMax = 30

/** Returns the handlers of the paths that agents call. The keys of the object are the paths. */
export function createAgentPaths(parts: AgentPathParts) {
  const { gateway, books, calendar, config, baseOf } = parts
  const asked = createWindows({ limit: usagesMax, windowMs: 60_000, clockMs: gateway.clockMs })
  return {
    '/.well-known/oauth-authorization-server': read(async (request) => oauthAnswer(200, discover(baseOf(request)))),
    '/.well-known/opencode': read(async (request) => oauthAnswer(200, setUpOpencode(config(), baseOf(request)))),
    // After a 404, a client uses no managed settings. A 401 would end its sign-in, so no token is checked here.
    '/managed/settings': read(async () => {
      throw new GatewayError('unknown_url', 'This gateway manages no settings.')
    }),
    '/api/oauth/usage': read(async (request) => oauthAnswer(200, await tellUse(request))),
    '/v1/logs': drained,
    '/v1/metrics': drained,
    '/v1/traces': drained,
  }

  function read(answer: (request: SideRequest) => Promise<ApiAnswer>) {
    return (request: SideRequest) =>
      enveloped(request, () => {
        const { method } = request.exchange
        if (method !== 'GET' && method !== 'HEAD') throw new GatewayError('unknown_url', 'Use GET here.')
        return answer(request)
      })
  }

  /** Accepts a client's telemetry and discards it unread, because it may contain prompts. */
  function drained(request: SideRequest): Promise<ApiAnswer> {
    return enveloped(request, async () => {
      if (request.exchange.method !== 'POST') throw new GatewayError('unknown_url', 'Use POST here.')
      await identifyBearer(request)
      if ((request.exchange.declaredBytes ?? 0) > telemetryBytesMax) throw largeTelemetry()
      return { status: 200, headers: { 'cache-control': 'no-store' } }
    })
  }

  /** Identifies the client. @throws the error that a request to a model would get */
  function identifyBearer({ exchange, record }: SideRequest) {
    return identify(gateway, { ip: record.ip, header: (name: string) => exchange.header(name) }, record)
  }

  async function tellUse(request: SideRequest): Promise<object> {
    const key = await identifyBearer(request)
    const place = asked.take(key.id)
    if (!place.ok) {
      const { retryAfterSeconds } = place
      throw new GatewayError('rate_limit_exceeded', failureTexts.usageFull, { retryAfterSeconds })
    }
    const { credits, signIn } = config()
    // Clients show amounts only in a currency, so the name of a credit must be a currency's code.
    if (!/^[A-Z]{3}$/.test(credits.name)) throw new GatewayError('unknown_url', 'No currency is configured here.')
    const own = await books()
    const nowMs = gateway.nowMs()
    const [row] = (await own.findKeys(key.id)).filter(({ id }) => id === key.id)
    const { personBounds, personSpend, bounds, spend } = row!
    const bound = personBounds.budget
      ? ([personBounds.budget, personSpend] as const)
      : bounds.budget && ([bounds.budget, spend] as const)
    if (bound) {
      const [budget, spent] = bound
      const resetsMs = renewsAt(calendar, budget, spent, nowMs)
      return tellCapped(
        { limitNanos: budget.nanos, spentNanos: spentAt(spent, nowMs), per: budget.per, resetsMs },
        credits.name,
      )
    }
    const { accountId } = row!
    if (signIn?.showBalance) {
      const { spentNanos } = await own.sumSpend({ accountId, scope: accountId, fromMs: 0, untilMs: neverMs })
      const { balanceNanos } = await own.findAccount(accountId)
      const limitNanos = balanceNanos + spentNanos
      return tellCapped({ limitNanos, spentNanos, per: undefined, resetsMs: undefined }, credits.name)
    }
    const { person } = bounds
    const whose =
      person === undefined ? { key: await own.listLines([key.id]) } : { person: await own.listIdentities(person) }
    const starts = (['month', 'week', 'day'] as const).map((per: NonNullable<Budget['per']>) =>
      calendar.periodOf(nowMs, per),
    )
    const ends = [...new Set([...starts.map(({ startMs }) => startMs), starts[2]!.endMs])].sort((a, b) => a - b)
    const { total } = await own.readUsage({
      ...{ bounds: ends.map((ms) => ms / quarterMs), daysOf: undefined, by: [], times: [], top: 1 },
      ...{ only: { account: [accountId], ...whose }, sums: ['cost'], sort: 'cost' },
    })
    const [monthNanos, weekNanos, dayNanos] = starts.map(({ startMs }) =>
      total.sums[0]!.reduce((sum, cost, at) => (ends[at]! >= startMs ? sum + cost : sum), 0n),
    ) as [bigint, bigint, bigint]
    return tellFree({ dayNanos, weekNanos, monthNanos }, credits.name)
  }
}

/** Returns the metadata of RFC 8414 and RFC 8628 §4, in the form that Claude Code reads. */
function discover(base: string): object {
  return {
    issuer: base,
    authorization_endpoint: `${base}/console/authorize`,
    device_authorization_endpoint: `${base}/oauth/device_authorization`,
    token_endpoint: `${base}/oauth/token`,
    revocation_endpoint: `${base}/oauth/revoke`,
    grant_types_supported: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token', 'authorization_code'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    gateway_protocol_version: 1,
  }
}

/**
 * Returns settings for `opencode auth login URL`. opencode runs the command in these settings only once and stores the
 * output. So the command prints a key, and not a token that is valid for an hour.
 */
function setUpOpencode({ catalog }: Config, base: string): object {
  const models = catalog.models.keys().map((id) => [id, { name: id }] as const)
  const provider = {
    npm: '@ai-sdk/openai-compatible',
    name: 'triwire',
    options: { baseURL: `${base}/v1`, apiKey: '{env:TRIWIRE_API_KEY}' },
    models: Object.fromEntries(models),
  }
  return {
    auth: { command: ['triwire', 'token', '--named', 'opencode', base], env: 'TRIWIRE_API_KEY' },
    config: { $schema: 'https://opencode.ai/config.json', provider: { triwire: provider } },
  }
}

/** Returns errors in the form of the messages wire, because clients of that wire use these paths. */
async function enveloped(request: SideRequest, answer: () => Promise<ApiAnswer>): Promise<ApiAnswer> {
  const id = { 'x-request-id': request.id, 'request-id': request.id }
  try {
    const answered = await answer()
    return { ...answered, headers: { ...id, ...answered.headers } }
  } catch (thrown) {
    const isSilent = thrown instanceof StoreSilent
    const error = isSilent ? new GatewayError('internal_error', failureTexts.silentAccounts) : thrown
    if (!(error instanceof GatewayError)) throw error
    const { status, code, message, shouldRetry, retryAfterSeconds } = error
    Object.assign(request.record, { code, message })
    const headers = {
      ...{ ...id, 'content-type': 'application/json', 'cache-control': 'no-store', 'x-should-retry': `${shouldRetry}` },
      ...(retryAfterSeconds !== undefined && { 'retry-after': `${retryAfterSeconds}` }),
      ...(status === 413 && { connection: 'close' }),
      ...(status === 401 && { 'www-authenticate': 'Bearer error="invalid_token"' }),
    }
    return { status, headers, body: wires.messages.client.envelope(error, request.id) }
  }
}
