import type { Books } from '../accounts/books.ts'
import { createCalendar } from '../accounts/calendar.ts'
import { createTokens } from '../accounts/sign-in/tokens.ts'
import type { SideRequest, SideRoute } from '../admin/side.ts'
import { findClientUrl } from '../config/client-url.ts'
import type { Config } from '../config/config.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { createAgentPaths } from '../sign-in/agent-paths.ts'
import type { SignInLimits } from '../sign-in/limits.ts'
import { type AskAgain, createOAuth } from '../sign-in/oauth.ts'

type SignInPathsParts = {
  gateway: Gateway
  sealKey: Uint8Array
  books(): Promise<Books>
  limits: SignInLimits
  /** Asks the identity provider whenever a token is refreshed. If undefined, the provider is never asked. */
  askAgain?: AskAgain | undefined
}

/** Creates the paths for programs that sign in (ruling Y19). */
export function createSignInPaths({
  gateway,
  sealKey,
  books,
  limits,
  askAgain,
}: SignInPathsParts): readonly SideRoute[] {
  const tokens = createTokens(sealKey)
  const config = () => gateway.snapshots.current.config
  const settings = () => config().signIn!
  const baseOf = (request: SideRequest) => findBase(config(), request)
  const oauth = createOAuth({ ...{ books, tokens, limits, settings, baseOf, askAgain }, nowMs: gateway.nowMs })
  const calendar = createCalendar(config().reporting)
  const agents = createAgentPaths({ gateway, books, calendar, config, baseOf })
  const isOn = ({ signIn }: Config) => signIn !== undefined
  return Object.entries({ ...oauth, ...agents }).map(([path, answer]) => ({ path, answer, isOn }))
}

/** Matches a loopback name, with or without a port. Only programs on this machine send such a name as their host. */
const ownHost = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/

/**
 * Finds the address at which this client reaches the gateway. Without `api_url`, only clients on this machine can sign
 * in (see `signInAddressMistake`).
 */
function findBase(config: Config, { exchange }: SideRequest): string {
  const host = exchange.header('host') ?? ''
  if (config.apiUrl !== undefined || !ownHost.test(host)) return findClientUrl(config).url
  return `${config.tls ? 'https' : 'http'}://${host}`
}
