import { readFile } from 'node:fs/promises'
import { BlockList, isIP } from 'node:net'
import type { AwsCredentials } from '../../clouds/sigv4.ts'
import { type DialRoute, ProxyRefusal } from '../dial.ts'
import { type FetchRequest, fetchHttp } from '../http-fetch.ts'
import { type CommandEnd, runCommand } from '../key-command.ts'

/** A credential of a cloud, as a source such as a file or a metadata service gave it. */
export type CloudToken = {
  /** Credentials that sign requests to AWS, or a bearer token with further headers. */
  use: AwsCredentials | { bearer: string; headers?: readonly (readonly [name: string, value: string])[] }
  /** The source, and the identity that the credential belongs to, in words for operators. Never a secret. */
  source: string
  identity: string
  /** The time until the credential expires, in ms; undefined if it never expires. */
  lifeMs: number | undefined
}

/** A source of credentials. The sources in a list are tried in the order of the list. */
export type CloudSource<Settings> = {
  name: string
  /** Whether the source may have a credential, judged by the settings and the environment. If not, it is not asked. */
  applies(settings: Settings, around: SourceAround): boolean
  /**
   * Gets a credential.
   * @returns undefined if the source has no credential. The next source is then asked
   * @throws Error with a message for operators, which contains no secret
   */
  take(settings: Settings, around: SourceAround): Promise<CloudToken | undefined>
}

/** The environment of a source: variables, clocks and routes. */
export type SourceAround = {
  env: Readonly<Record<string, string | undefined>>
  /** Returns Unix milliseconds by the cloud's clock. Until the cloud has sent a date, our own clock is used. */
  nowMs(): number
  /** Called with the `Date` of an answer of the cloud. */
  noteDate(date: string | undefined): void
  /** Returns the route to an address. Loopback and link-local addresses are reached without a proxy. */
  routeTo(address: URL): DialRoute
  signal: AbortSignal
}

/**
 * Hosts of metadata services. Only such hosts and loopback may be asked over plain HTTP. `link` is any link-local host.
 */
type MetadataHosts = ReadonlySet<string> | 'link'

type Asked = Pick<FetchRequest, 'method' | 'headers' | 'body'> & {
  /**
   * The hosts of a metadata service, if the address may be of one. Such a host is asked without a proxy and with a
   * short time limit.
   */
  metadata?: MetadataHosts
}

/** An endpoint answered with an error status. */
class SourceRefusal extends Error {}

/**
 * The time limits of an endpoint and of a metadata service, in ms. A metadata service is either near or absent, so its
 * limit is short. A second try follows.
 */
const askMs = 10_000
const metadataMs = 1_000
const answerBytesMax = 65_536

const link = new BlockList()
link.addSubnet('169.254.0.0', 16, 'ipv4')
const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/**
 * Asks an endpoint that gives credentials. Redirects are not followed.
 * @returns the text and headers of a successful answer
 * @throws SourceRefusal for any other status; Error if the address may not be asked, or does not answer
 */
export async function askSource(
  around: SourceAround,
  address: string,
  { metadata, ...request }: Asked,
): Promise<{ text: string; header(name: string): string | undefined }> {
  const url = URL.parse(address)
  const where = url ? url.host : 'an address that is not a URL'
  if (!url || !isAllowed(url, metadata))
    throw new Error(
      `${where} is not asked: it must be https://, or http:// on loopback${metadata ? ' or a metadata address' : ''}`,
    )
  const isNear = isOneOf(loopback, url) || isMetadata(url, metadata)
  const isBrief = isNear && metadata !== undefined
  const { proxy, ...trust } = around.routeTo(url)
  const route = isNear ? trust : { proxy, ...trust }
  for (let tries = isBrief ? 2 : 1; ; tries--) {
    const signal = AbortSignal.any([around.signal, AbortSignal.timeout(isBrief ? metadataMs : askMs)])
    try {
      const response = await fetchHttp(url, { ...request, ...route, signal })
      const text = await response.text(answerBytesMax)
      around.noteDate(response.headers.get('date'))
      if (response.ok) return { text, header: (name) => response.headers.get(name) }
      throw new SourceRefusal(`${where} answers ${response.status}${codeOf(text)}`)
    } catch (error) {
      if (error instanceof SourceRefusal) throw error
      if (tries > 1 && !around.signal.aborted) continue
      const { code, name } = error as NodeJS.ErrnoException
      const cause = error instanceof ProxyRefusal ? error.message : (code ?? 'no connection')
      const why = name === 'TimeoutError' ? 'takes too long' : `cannot be reached (${cause})`
      throw new Error(`${where} ${why}`)
    }
  }
}

function isAllowed(url: URL, metadata: MetadataHosts | undefined): boolean {
  if (url.username !== '' || url.password !== '') return false
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isOneOf(loopback, url))) return true
  return url.protocol === 'http:' && isMetadata(url, metadata)
}

function isMetadata(url: URL, metadata: MetadataHosts | undefined): boolean {
  return metadata === 'link' ? isOneOf(link, url) : metadata?.has(url.hostname) === true
}

function isOneOf(addresses: BlockList, { hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (host === 'localhost') return addresses === loopback
  const family = isIP(host)
  return family !== 0 && addresses.check(host, family === 6 ? 'ipv6' : 'ipv4')
}

/** Finds the code of a refusal in XML or JSON. The rest is not used, as some refusals quote what was sent. */
function codeOf(text: string): string {
  const [, code] =
    /<Code>([\w.-]{1,60})<\/Code>|"(?:error|code|Code|status)"\s*:\s*"([\w.-]{1,60})"/.exec(text)?.filter(Boolean) ?? []
  return code === undefined ? '' : ` ${code}`
}

/** Reads a file with credentials. @param what how an error names the file @throws Error with path and cause */
export async function readSource(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new Error(`${what} ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/**
 * Runs the command that a source of credentials names. Words of the command can be in quotes.
 * @param env variables that the program gets in addition to those of this process
 * @returns the output of the program @throws Error with the name of the program
 */
export function runSource(
  { signal }: SourceAround,
  text: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const command = wordsOf(text)
  return new Promise((resolve, reject) => {
    const onEnd = (end: CommandEnd) => {
      signal.removeEventListener('abort', stop)
      if ('text' in end) resolve(end.text)
      else reject(new Error(`${command[0]}: ${end.why}`))
    }
    const running = runCommand(command, onEnd, false, env)
    const stop = () => {
      running.stop()
      reject(new Error(`${command[0]}: it takes too long`))
    }
    signal.addEventListener('abort', stop, { once: true })
  })
}

/** Splits a command into words, which may be in quotes. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'])+/g)].map(([word]) =>
    word.replace(/"((?:\\.|[^"\\])*)"|'([^']*)'/g, (_, double: string | undefined, single: string | undefined) =>
      double === undefined ? single! : double.replace(/\\(.)/g, '$1'),
    ),
  )
}

/**
 * Reads a JSON object. Each member in `names` must be a text that is not empty.
 * @param where the name of the JSON in error messages @throws Error with the first missing member
 */
export function readMembers<Name extends string>(
  text: string,
  where: string,
  names: readonly Name[],
): Record<Name, string> & Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {}
  if (typeof value !== 'object' || value === null) throw new Error(`${where} is not a JSON object`)
  const members = value as Record<string, unknown>
  for (const name of names)
    if (typeof members[name] !== 'string' || members[name] === '') throw new Error(`${where} has no ${name}`)
  return members as Record<Name, string> & Record<string, unknown>
}

/**
 * Returns the time until a credential expires, in ms.
 * @param end the time of expiry, as text
 * @throws Error if the text is not a time
 */
export function lifeUntil(end: unknown, { nowMs }: SourceAround, where: string): number | undefined {
  if (end === undefined || end === null || end === '') return undefined
  const endMs = Date.parse(String(end))
  if (Number.isNaN(endMs)) throw new Error(`${where} has an invalid expiry time`)
  return endMs - nowMs()
}

/** Makes the body of a form, and its header. */
export function formOf(fields: Record<string, string | undefined>): Pick<FetchRequest, 'method' | 'headers' | 'body'> {
  const said = Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined)
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return { method: 'POST', headers, body: new URLSearchParams(said).toString() }
}

/** Reads an answer of OAuth. `expires_in` is in seconds, as a number or as text. @throws Error if it has no token */
export function readOAuth(text: string, where: string): { bearer: string; lifeMs: number } {
  const answer = readMembers(text, where, ['access_token'])
  const seconds = Number(answer['expires_in'])
  if (!(seconds > 0)) throw new Error(`${where} has no expires_in`)
  return { bearer: answer.access_token, lifeMs: seconds * 1_000 }
}

/** Asks the first source that applies and has a credential. @returns undefined if no source has a credential */
export async function takeFirst<Settings>(
  sources: readonly CloudSource<Settings>[],
  settings: Settings,
  around: SourceAround,
): Promise<CloudToken | undefined> {
  for (const { applies, take } of sources) {
    const token = applies(settings, around) ? await take(settings, around) : undefined
    if (token) return token
  }
  return undefined
}
