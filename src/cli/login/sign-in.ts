import { spawn } from 'node:child_process'
import { setTimeout as pauseMs } from 'node:timers/promises'
import {
  askEndpoint,
  discover,
  type OauthAnswer,
  patienceMs,
  plainText,
  readGranted,
  reasonOf,
  type SignInOffer,
  type TokenGrant,
} from './exchange.ts'
import { SignInFault } from './fault.ts'
import { isSafe } from './gateway-url.ts'
import { fileOf, type KeptSignIn, makeFolder, prepareNext, readKept } from './kept.ts'
import { tryLock } from './lock.ts'

/** The name of this program on a gateway's pages. */
const surface = 'triwire'

type SignInOptions = {
  /** Whether to show a code (the device grant) even if this machine has a browser. */
  isDevice?: boolean
  /** Receives each line for the person. */
  tell(line: string): void
  /** Waits between two polls. A test passes its own. */
  pause?(ms: number): Promise<unknown>
}

/**
 * Signs a person in at a gateway and stores the tokens. A browser of this machine is used if the gateway supports that.
 * Otherwise the person enters a code on any machine. An earlier sign-in at the gateway is revoked.
 * @throws SignInFault
 */
export async function signIn(
  url: string,
  { isDevice = false, tell, pause = pauseMs }: SignInOptions,
): Promise<KeptSignIn> {
  // A folder that cannot be written is reported before the person uses the browser.
  makeFolder()
  prepareNext(fileOf(url)).drop()
  const offer = await discover(url)
  const granted = (isDevice ? undefined : await signInHere(offer, tell)) ?? (await signInByCode(offer, { tell, pause }))
  const kept: KeptSignIn = {
    ...{ url, token_endpoint: offer.tokenEndpoint },
    ...(offer.revocationEndpoint && { revocation_endpoint: offer.revocationEndpoint }),
    ...(granted.email && { email: granted.email }),
    tokens: granted.tokens,
  }
  const path = fileOf(url)
  // The lock prevents a refresh of the earlier sign-in from overwriting the new one.
  const before = await withLock(path, () => {
    const found = ifReadable(path)
    prepareNext(path).write(kept)
    return found
  })
  if (before) await revoke(before)
  return kept
}

/** The longest wait for the lock, in ms. A refresh holds it for a few seconds at most. */
const lockMs = 20_000

async function withLock<T>(path: string, run: () => T): Promise<T> {
  const started = performance.now()
  for (;;) {
    const release = tryLock(`${path}.lock`)
    if (release) {
      try {
        return run()
      } finally {
        release()
      }
    }
    if (performance.now() - started > lockMs)
      throw new SignInFault(1, `${path}.lock is held by another triwire: try again`)
    await pauseMs(50)
  }
}

/** Reads a sign-in. A damaged file counts as absent, because it is replaced. */
function ifReadable(path: string): KeptSignIn | undefined {
  try {
    return readKept(path)
  } catch {
    return undefined
  }
}

/** Signs in with a browser of this machine. @returns undefined if there is no browser, or the gateway lacks the page */
async function signInHere(
  { authorizationEndpoint, tokenEndpoint }: SignInOffer,
  tell: SignInOptions['tell'],
): Promise<TokenGrant | undefined> {
  if (authorizationEndpoint === undefined || !hasBrowser()) return undefined
  const { askOnLoopback } = await import('./loopback.ts')
  const request = await askOnLoopback(authorizationEndpoint, surface)
  try {
    if (!(await openBrowser(request.pageUrl))) return undefined
    tell(`a browser opens ${request.pageUrl}`)
    tell('sign in there; without a browser on this machine run this with --device')
    const form = await request.answered
    const askedMs = Date.now()
    return needGranted(await askEndpoint(tokenEndpoint, form, patienceMs), askedMs)
  } finally {
    request.close()
  }
}

function needGranted(answer: OauthAnswer, askedMs: number): TokenGrant {
  const granted = readGranted(answer, askedMs)
  if (granted) return granted
  if (answer.status === 200)
    throw new SignInFault(1, 'the answer of the token endpoint has no token with a number expires_in')
  throw new SignInFault(1, `the gateway gives no token (status ${answer.status})${reasonOf(answer)}`)
}

/** Seconds between polls: the default (RFC 8628 §3.2), the minimum, and the increase for each `slow_down` (§3.5). */
const [intervalSeconds, intervalSecondsMin, slowerSeconds] = [5, 1, 5]

type CodeTerms = Pick<Required<SignInOptions>, 'tell' | 'pause'>

async function signInByCode(offer: SignInOffer, { tell, pause }: CodeTerms): Promise<TokenGrant> {
  const answer = await askEndpoint(offer.deviceEndpoint, { surface }, patienceMs)
  const {
    device_code: device,
    user_code: code,
    verification_uri: page,
    verification_uri_complete: whole,
    expires_in: life,
  } = answer.body
  if (answer.body['error'] === 'slow_down' || answer.status === 429)
    throw new SignInFault(1, `the gateway limits sign-ins right now${reasonOf(answer)}: try again later`)
  if (answer.status !== 200)
    throw new SignInFault(1, `the gateway begins no sign-in (status ${answer.status})${reasonOf(answer)}`)
  const isWhole = [device, code, page].every((one) => typeof one === 'string' && one !== '') && typeof life === 'number'
  const pageUrl = URL.parse(String(page))
  if (!isWhole || !pageUrl || !isSafe(pageUrl))
    throw new SignInFault(1, 'the answer of the device endpoint is malformed')
  tell(`open ${pageUrl.href} in a browser, on any machine, and enter this code:`)
  tell('')
  tell(`    ${plainText(code)}`)
  tell('')
  const notice = plainText(answer.body['login_notice'])
  if (notice !== '') tell(notice)
  const wholeUrl = URL.parse(String(whole ?? page))
  if (hasBrowser() && wholeUrl && isSafe(wholeUrl)) await openBrowser(wholeUrl.href)
  const { interval } = answer.body
  return poll(offer.tokenEndpoint, String(device), {
    seconds: typeof interval === 'number' ? Math.max(intervalSecondsMin, interval) : intervalSeconds,
    endMs: performance.now() + Number(life) * 1_000,
    pause,
  })
}

type Polling = { seconds: number; endMs: number; pause: CodeTerms['pause'] }

/** Errors that end polling, with the messages for people. */
const outcomes: Readonly<Record<string, string>> = {
  access_denied: 'the sign-in was denied in the browser',
  expired_token: 'the sign-in timed out: the code is good no more; run triwire login again',
}

/** Polls until the person has decided. If the server cannot be reached, the next poll tries again. */
async function poll(endpoint: string, device: string, { seconds, endMs, pause }: Polling): Promise<TokenGrant> {
  const form = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: device }
  for (;;) {
    await pause(seconds * 1_000)
    const askedMs = Date.now()
    const answer = await askEndpoint(endpoint, form, patienceMs).catch((error: unknown) => {
      if (performance.now() >= endMs) throw error
      return undefined
    })
    const error = String(answer?.body['error'] ?? '')
    if (error === 'slow_down') seconds += slowerSeconds
    const outcome = outcomes[error]
    if (outcome !== undefined) throw new SignInFault(1, outcome)
    const isPending =
      answer === undefined || answer.status >= 500 || ['authorization_pending', 'slow_down'].includes(error)
    if (!isPending) return needGranted(answer, askedMs)
    if (performance.now() >= endMs) throw new SignInFault(1, outcomes['expired_token']!)
  }
}

const revokeMs = 5_000

/**
 * Ends a session at its gateway, by revoking the bearer token and the refresh token (RFC 7009).
 * @returns whether the gateway has confirmed the end
 */
async function revoke({ url, revocation_endpoint: known, tokens }: KeptSignIn): Promise<boolean> {
  if (!tokens) return true
  const { access_token: access, refresh_token: refresh } = tokens
  try {
    const endpoint = known ?? (await discover(url)).revocationEndpoint
    if (endpoint === undefined) return false
    const forms: Record<string, string>[] = [{ token: access }]
    if (refresh !== undefined) forms.push({ token: refresh, token_type_hint: 'refresh_token' })
    const answers = await Promise.all(forms.map((form) => askEndpoint(endpoint, form, revokeMs)))
    return answers.every(({ status }) => status === 200)
  } catch {
    return false
  }
}

/**
 * Removes the file of the sign-in, and ends its session.
 * @returns the former sign-in, and whether the gateway has confirmed the end of the session
 */
export async function signOut(url: string): Promise<{ kept: KeptSignIn | undefined; isHeard: boolean } | undefined> {
  const path = fileOf(url)
  const { existsSync, rmSync } = await import('node:fs')
  if (!existsSync(path)) return undefined
  const kept = await withLock(path, () => {
    const found = ifReadable(path)
    // A process that was killed may have left new tokens in the second file.
    for (const file of [path, `${path}.new`]) rmSync(file, { force: true })
    return found
  })
  return { kept, isHeard: kept === undefined ? false : await revoke(kept) }
}

/** Whether this machine can show a page to the person. It cannot over SSH, or on Linux without a display. */
function hasBrowser(env: NodeJS.ProcessEnv = process.env, platform: NodeJS.Platform = process.platform): boolean {
  if (env['BROWSER']) return true
  if (env['SSH_CONNECTION'] || env['SSH_TTY']) return false
  return ['darwin', 'win32'].includes(platform) || Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY'])
}

/** Opens a page in the person's browser, without a shell. @returns whether the browser's program could be started */
function openBrowser(url: string, env: NodeJS.ProcessEnv = process.env): Promise<boolean> {
  const [program, ...args] = env['BROWSER'] ? [env['BROWSER']] : (openers[process.platform] ?? ['xdg-open'])
  return new Promise((resolve) => {
    const child = spawn(program!, [...args, url], { stdio: 'ignore', detached: true })
    child.once('error', () => resolve(false)).once('spawn', () => resolve(true))
    child.unref()
  })
}

const openers: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  darwin: ['open'],
  // `start` is a command of the shell, and the shell would interpret the `&` of an address.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}
