import { setTimeout as pause } from 'node:timers/promises'
import type { OauthAnswer } from './exchange.ts'
import { SignInFault } from './fault.ts'
import { fileOf, isGood, isOver, type KeptSignIn, type KeptTokens, prepareNext, readKept } from './kept.ts'
import { tryLock } from './lock.ts'

/** A token that expires within this time is refreshed, in ms. */
const dueMs = 300_000
/** The time limit of a refresh with all its waits, in ms. Codex ends a command after 5 s. */
const refreshMs = 4_500
/** A refresh begins only if this much of `refreshMs` is left. If it timed out, the new tokens could be lost. */
const attemptMsMin = 1_000
/** The longest wait for another process's refresh while the old token is still valid, in ms. */
const waitMs = 1_500
const lookMs = 20

/**
 * Returns a bearer token for a gateway: the token in the file, unless it expires soon. If it does, one process
 * refreshes it, and other processes wait for the result.
 * @param warn receives a line about a fault that a person should correct, although there is a token
 * @throws SignInFault
 */
export async function readBearer(url: string, warn: (line: string) => void): Promise<string> {
  const path = fileOf(url)
  const first = needTokens(url, readKept(path, url))
  if (!isDue(first)) return first.access_token
  if (first.refresh_token === undefined && isGood(first)) return first.access_token
  try {
    return await waitForTurn(url, path, first, warn)
  } catch (error) {
    const isFault = error instanceof SignInFault && error.exitCode === 1
    // The old token still works, so an agent can continue while the gateway is down.
    if (!isFault || !isGood(first)) throw error
    if (error.message.startsWith('cannot ')) warn(error.message)
    return first.access_token
  }
}

/** Returns the tokens of a sign-in. @throws SignInFault if there are none, or if they expired and cannot be renewed */
function needTokens(url: string, kept: KeptSignIn | undefined): KeptTokens {
  const cure = `run triwire login ${url}`
  if (kept === undefined) throw new SignInFault(3, `nobody is signed in at ${url}: ${cure}`)
  if (kept.tokens === undefined) throw new SignInFault(3, `the sign-in at ${url} has ended${kept.ended}: ${cure}`)
  if (isOver(kept)) throw new SignInFault(3, `the sign-in at ${url} has run out: ${cure}`)
  return kept.tokens
}

function hasEnded(url: string, reason = ''): SignInFault {
  return new SignInFault(3, `the sign-in at ${url} has ended${reason}: run triwire login ${url}`)
}

/** Whether to refresh a token. If the clock was set back, `expires_ms` is wrong, so the token is refreshed early. */
function isDue({ obtained_ms, expires_ms }: KeptTokens, nowMs = Date.now()): boolean {
  return expires_ms - nowMs < dueMs || nowMs < obtained_ms - dueMs
}

async function waitForTurn(
  url: string,
  path: string,
  first: KeptTokens,
  warn: (line: string) => void,
): Promise<string> {
  const started = performance.now()
  for (;;) {
    const release = tryLock(`${path}.lock`)
    try {
      const now = needTokens(url, readKept(path, url))
      // Another process has refreshed the token, or a person has signed in again.
      if (now.access_token !== first.access_token && isGood(now)) return now.access_token
      const leftMs = refreshMs - (performance.now() - started)
      if (release && leftMs >= attemptMsMin) return await refresh(path, leftMs, warn)
      if (leftMs < attemptMsMin) throw new SignInFault(1, `${url} gave no new token in time: try again`)
      if (performance.now() - started > waitMs && isGood(first)) return first.access_token
    } finally {
      release?.()
    }
    await pause(lookMs)
  }
}

/** Errors of a token endpoint for which a retry is useless (RFC 6749 §5.2, RFC 8628 §3.5). */
const endings = ['invalid_grant', 'access_denied', 'expired_token', 'unauthorized_client', 'invalid_client']

/** Requests new tokens and stores them. The caller must hold the lock. */
async function refresh(path: string, limitMs: number, warn: (line: string) => void): Promise<string> {
  const next = prepareNext(path)
  try {
    const { readGranted, reasonOf } = await import('./exchange.ts')
    const { tokens: old, ...kept } = readKept(path)!
    const askedMs = Date.now()
    const answer = await askTwice(kept.token_endpoint, old!.refresh_token!, limitMs)
    const granted = readGranted(answer, askedMs)
    if (granted) {
      // A server that keeps the refresh token valid does not send it again (RFC 6749 §6).
      const tokens = { refresh_token: old!.refresh_token!, ...granted.tokens }
      try {
        next.write({ ...kept, tokens })
      } catch (error) {
        // For a minute the gateway gives the same new tokens for the old refresh token, so a later try can store them.
        warn((error as Error).message)
      }
      return tokens.access_token
    }
    const reason = reasonOf(answer)
    if (!endings.includes(String(answer.body['error'])))
      throw new SignInFault(1, `${kept.url} gives no new token (status ${answer.status})${reason}: try again`)
    next.write({ ...kept, ended: reason })
    throw hasEnded(kept.url, reason)
  } finally {
    next.drop()
  }
}

/** The pause before the second try, in ms. A server that is being restarted will respond soon. */
const againMs = 200

/**
 * Sends the refresh request. After a failure, sends it once more if there is time. This does no harm, because the
 * gateway accepts an old refresh token for a minute more, and returns the same new tokens.
 */
async function askTwice(endpoint: string, token: string, limitMs: number): Promise<OauthAnswer> {
  const { askEndpoint } = await import('./exchange.ts')
  const form = { grant_type: 'refresh_token', refresh_token: token }
  const started = performance.now()
  const leftMs = () => limitMs - againMs - (performance.now() - started)
  try {
    const answer = await askEndpoint(endpoint, form, limitMs)
    if (answer.status < 500 || leftMs() < attemptMsMin) return answer
  } catch (error) {
    if (leftMs() < attemptMsMin) throw error
  }
  await pause(againMs)
  return askEndpoint(endpoint, form, leftMs())
}
