import { createHmac, timingSafeEqual } from 'node:crypto'
import { base62, randomText } from '../../ids.ts'
import { digestKey } from '../keys.ts'

/*
 * The access token and the refresh token of a session (rulings Y20, Y28). They are stored nowhere, because they can be
 * computed whenever they are needed:
 *
 *     access   tri-at-  secret  generation  end in Unix seconds  check value
 *     refresh  tri-rt-  secret  generation  check value
 *
 * The secret is random. Its digest identifies the session's key. The check value is an HMAC of everything before it,
 * with a key derived from the seal key. So nobody can turn an access token into a refresh token. A refresh makes the
 * tokens of the next generation, which are the same on every replica.
 */

const schemes = { access: 'tri-at-', refresh: 'tri-rt-' } as const
/** The number of random characters in a secret. Together they have 131 random bits. */
const secretChars = 22
const generationChars = 4
const endChars = 6
/** The number of characters of the check value: 128 bits of the HMAC. */
const checkChars = 22

/** The most access tokens for which the result of the check is remembered. They take some 3 MB. */
const checkedMax = 10_000

const digits = (chars: number) => `([0-9A-Za-z]{${chars}})`
const secretAndGeneration = digits(secretChars) + digits(generationChars)
const forms = {
  access: new RegExp(`^${schemes.access}${secretAndGeneration}${digits(endChars)}${digits(checkChars)}$`),
  refresh: new RegExp(`^${schemes.refresh}${secretAndGeneration}${digits(checkChars)}$`),
}

/** Whether a prefix belongs to the key of a session. */
export function isOfSession(prefix: string): boolean {
  return prefix.startsWith(schemes.access)
}

/** Makes the secret of a session. Tokens of all its generations (one for each refresh) contain this secret. */
export function createSecret(): { secret: string; digest: string; prefix: string } {
  const secret = randomText(secretChars)
  return { secret, digest: digestKey(secret), prefix: schemes.access + secret.slice(0, 6) }
}

/** Makes the functions that issue and read session tokens. @param sealKey the secret that all replicas share */
export function createTokens(sealKey: Uint8Array) {
  const key = createHmac('sha256', sealKey).update('triwire session tokens 1').digest()
  /** The results for access tokens that were checked, by digest of the token. A digest costs a tenth of a check. */
  const checked = new Map<string, { digest: string; expiresMs: number }>()
  return { issue, readAccess, readRefresh }

  /** Makes the two tokens of a generation. @param expiresMs when the access token expires, in Unix milliseconds */
  function issue(secret: string, generation: number, expiresMs: number): { access: string; refresh: string } {
    const begin = secret + spell(generation, generationChars)
    return {
      access: sealed(schemes.access + begin + spell(Math.floor(expiresMs / 1000), endChars)),
      refresh: sealed(schemes.refresh + begin),
    }
  }

  /** Reads an access token, even if it has expired. @returns undefined if we did not make the text */
  function readAccess(text: string): { digest: string; expiresMs: number } | undefined {
    // Most requests have a key instead of an access token. For them, this comparison is the only cost.
    if (!text.startsWith(schemes.access)) return undefined
    const digest = digestKey(text)
    const known = checked.get(digest)
    if (known) return known
    const [, secret, , end] = (isOurs(text) && forms.access.exec(text)) || []
    if (secret === undefined) return undefined
    if (checked.size === checkedMax) checked.clear()
    const access = { digest: digestKey(secret), expiresMs: read(end!) * 1000 }
    checked.set(digest, access)
    return access
  }

  /** Reads a refresh token, even if its session has ended. @returns undefined if we did not make the text */
  function readRefresh(text: string): { digest: string; secret: string; generation: number } | undefined {
    const [, secret, generation] = (isOurs(text) && forms.refresh.exec(text)) || []
    return secret === undefined ? undefined : { digest: digestKey(secret), secret, generation: read(generation!) }
  }

  function isOurs(text: string): boolean {
    const body = text.slice(0, -checkChars)
    const [shown, wanted] = [Buffer.from(text), Buffer.from(sealed(body))]
    return shown.length === wanted.length && timingSafeEqual(shown, wanted)
  }

  function sealed(body: string): string {
    const half = createHmac('sha256', key).update(body).digest().subarray(0, 16)
    return body + spell(BigInt(`0x${half.toString('hex')}`), checkChars)
  }
}

function spell(number: number | bigint, chars: number): string {
  let rest = BigInt(number)
  let text = ''
  for (; text.length < chars; rest /= 62n) text = base62[Number(rest % 62n)] + text
  return text
}

function read(text: string): number {
  return Array.from(text).reduce((sum, digit) => sum * 62 + base62.indexOf(digit), 0)
}
