import { BlockList, isIP } from 'node:net'
import { isTimeZone } from '../accounts/calendar.ts'
import { didYouMean } from '../catalog/near-ids.ts'
import { modelPlace } from '../catalog/wire-names.ts'
import { pathOf, wireEndOf } from './endpoints.ts'

/** A secret, which prints as `[secret]` if it is printed by accident. */
export class Secret {
  readonly #value: string
  constructor(value: string) {
    this.#value = value
  }
  /** Returns the value. Call it only to send the value or to hash it. */
  reveal(): string {
    return this.#value
  }
  toString(): string {
    return '[secret]'
  }
  toJSON(): string {
    return '[secret]'
  }
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]'
  }
}

export type Address = { host: string; port: number }

export const portMax = 65_535

/** A function named `…Mistake` returns what to change in an invalid value, or undefined for a valid value. */

export function addressMistake(value: string): string | undefined {
  const { host, port } = parseAddress(value)
  const isHost = isIP(host) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(host)
  if (isHost && Number.isInteger(port) && port <= portMax) return undefined
  return 'must be host:port, such as 127.0.0.1:8080 or [::1]:8080'
}

/** Reads `host:port`, with an IPv6 host in brackets. The port is NaN if the text is invalid. */
export function parseAddress(value: string): Address {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(value)
  return { host: match?.[1] ?? match?.[2] ?? '', port: match ? Number(match[3]) : Number.NaN }
}

/** The inverse of `parseAddress`. */
export function formatAddress({ host, port }: Address): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Checks the admin listener's public URL. It must be https:, or anybody on the network could read the cookie. */
export function publicUrlMistake(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined
  const isPlain = url?.protocol === 'https:' && url.username === '' && url.password === '' && !/[?#\\\s]/.test(value)
  const hasPath = /^\/([\w.-]+\/?)*$/.test(url?.pathname ?? '') && !/\/\.\.?(\/|$)/.test(value)
  return isPlain && hasPath
    ? undefined
    : 'must be https:// and a host, such as https://admin.example or https://example.com/triwire'
}

export function isLoopback({ host }: Address): boolean {
  const family = isIP(host)
  return family === 0 ? host === 'localhost' : loopback.check(host, family === 6 ? 'ipv6' : 'ipv4')
}

/**
 * An admin listener without TLS that other machines reach serves everything only at a second address, on loopback.
 * Returns that address. If its port is taken, the server does not start, because commands would send tokens to another
 * program. Workers use later ports.
 */
export function addressBeside({ port }: Address): Address {
  return { host: '127.0.0.1', port: port + 1 }
}

export function networkMistake(value: string): string | undefined {
  const [address = '', bits, ...rest] = value.split('/')
  const bitsMax = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax)
  return bitsMax > 0 && isRange && rest.length === 0
    ? undefined
    : 'must be an address or a CIDR range, such as 10.0.0.0/8'
}

/** Checks a URL. @param credentials what to do instead of writing credentials into the URL */
function webUrlMistake(value: string, example: string, credentials: string): string | undefined {
  const url = URL.parse(value)
  if (!url || !/^https?:$/.test(url.protocol)) return `must be an http:// or https:// URL, such as ${example}`
  return url.username || url.password ? `must not carry credentials; ${credentials}` : undefined
}

const versionTwice = /(\/v\d+\w*)\/*\1(?:\/|$)/i
const versionCure = 'has its version twice, such as `/v1/v1`: write it once'

export function baseUrlMistake(value: string): string | undefined {
  const mistake = webUrlMistake(value, 'https://api.example.com', 'write the key under accounts')
  if (mistake) return mistake
  if (/[?#]/.test(value)) return 'must have no query and no fragment; a fixed query goes under `query`'
  if (versionTwice.test(pathOf(value))) return versionCure
  const end = wireEndOf(pathOf(value))
  return end && `must end before \`${end}\`, which is the path of a wire: the gateway adds it itself`
}

/** Returns a base URL without final slashes. */
export function parseBaseUrl(value: string): string {
  return new URL(value).origin + pathOf(value)
}

/** Returns what to change in an invalid address of a collector. */
export function endpointMistake(value: string): string | undefined {
  return webUrlMistake(value, 'http://127.0.0.1:4318', 'send a header')
}

/** Returns what to change in an invalid address of a webhook. */
export function webhookMistake(value: string): string | undefined {
  return webUrlMistake(value, 'https://hooks.example.com/triwire', 'the signature says who it is from')
}

const hasOwnQuotes = /^["'`]|["'`]$/
const quotesCure = 'must not have quotes of its own: take the inner ones away'

/** Whether a secret consists of so few different bytes or characters that it can be guessed. */
export function isGuessable(secret: Iterable<unknown>): boolean {
  return new Set(secret).size < 8
}

export function webhookSecretMistake(value: string): string | undefined {
  if (hasOwnQuotes.test(value)) return quotesCure
  const [, base64] = /^whsec_(.*)$/.exec(value) ?? []
  const isBase64 = base64 !== undefined && /^[A-Za-z0-9+/]{22,}={0,2}$/.test(base64)
  const visible = value.replace(/[\p{C}\p{Z}]/gu, '')
  const isVaried = !isGuessable(isBase64 ? Buffer.from(base64, 'base64') : visible)
  if (isVaried && (base64 === undefined ? visible.length >= 16 : isBase64)) return undefined
  return 'must be whsec_ and at least 16 bytes in base64, or at least 16 characters, 8 of them different; `openssl rand -hex 32` makes some'
}

export function pathMistake(value: string): string | undefined {
  const isPath = /^\/[!-~]*$/.test(value) && !/[?#\\]/.test(value)
  if (!isPath) return "must be a path from the host's root, such as /openai/responses; a fixed query goes under `query`"
  if (versionTwice.test(value)) return versionCure
  if (/[{}]/.test(value.replaceAll(modelPlace, '')))
    return `must have no braces but those of ${modelPlace}, which stands for the upstream's name of the model`
  return undefined
}

/** Returns what to change in an invalid key of a provider. It never quotes the key. */
export function keyMistake(text: string): string | undefined {
  if (text === '') return 'holds no key: it is empty'
  if (text.startsWith('$')) {
    return `must not begin with \`$\`; for an environment variable write "\${NAME}", with the braces`
  }
  if (text !== text.trim()) return 'must not begin or end with a blank or a line break'
  if (hasOwnQuotes.test(text)) return quotesCure
  if (
    /^(?:os\.(?:environ|getenv)|env[.:/]|process\.env|(?:file|vault|op):|\{.*\}$|%\w+%$|<.*>$|your[-_]|.*\.\.\.)/i.test(
      text,
    )
  )
    return `must be the key itself, and other programs' words for a variable mean nothing here; write "\${NAME}"`
  if (/^[!-~]{1,8192}$/.test(text)) return undefined
  return 'must hold one key and nothing else: a single word'
}

/** Headers that the gateway always sets itself. */
const fixedHeaders = ['connection', 'content-length', 'content-type', 'host', 'transfer-encoding', 'upgrade']

/** Headers that the gateway sets itself, including headers with credentials. */
const ownHeaders = new Set([...fixedHeaders, 'authorization', 'proxy-authorization', 'x-api-key'])

const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

/** Checks the name of the header in which a credential is sent. */
export function keyHeaderMistake(name: string): string | undefined {
  if (!headerName.test(name)) return 'must be the name of a header, such as api-key'
  const isOther = fixedHeaders.includes(name.toLowerCase()) || name.toLowerCase() === 'proxy-authorization'
  return isOther ? 'must not be a header that means something else' : undefined
}

/** Headers that the gateway sets itself in requests to a collector. Headers with credentials come from the operator. */
export const collectorHeaders: ReadonlySet<string> = new Set(fixedHeaders)

/** Checks a header. @param taken names that the gateway sets itself */
export function headerMistake(
  name: string,
  value: string,
  taken: ReadonlySet<string> = ownHeaders,
): string | undefined {
  if (!headerName.test(name)) return 'is not the name of a header'
  if (taken.has(name.toLowerCase())) return 'is a header that the gateway writes itself; leave it out'
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value) ? undefined : 'must be one line of Latin-1 text'
}

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Converts `500ms`, `30s`, `5m`, `1h`, `1d` or a plain number to milliseconds. */
export function parseDuration(value: string | number): number {
  if (typeof value === 'number') return value
  const [, amount, unit] = /^([\d.]+)([a-z]+)$/.exec(value)!
  return Math.round(Number(amount) * unitsMs[unit as keyof typeof unitsMs])
}

/** Returns what is wrong with the name of a time zone, with a similar name. Undefined if the name is known. */
export function timeZoneMistake(name: string): string | undefined {
  if (isTimeZone(name)) return undefined
  const meant = didYouMean(name.replaceAll(' ', '_'), Intl.supportedValuesOf('timeZone'))
  return `must be the name of a time zone, such as UTC, Europe/Berlin or Asia/Kolkata${meant ? `; ${meant}` : ''}`
}

/**
 * Whether the percent-escapes in a part of a URL are valid. A password with special characters contains such escapes.
 */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
