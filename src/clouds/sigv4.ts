import { createHmac, hash } from 'node:crypto'

/** Credentials that sign for an account of AWS. Temporary credentials also have a token. */
export type AwsCredentials = { id: string; secret: string; token?: string }

/** The scope of a signature, without its day, which is the day of the signing. */
export type SigningPlace = { region: string; service: string }

/** A request as it is sent. `path` includes the query, percent-encoded. `headers` has names and values in turn. */
export type SignableRequest = {
  method: string
  /** The host, with its port if that is not the usual one. */
  host: string
  path: string
  headers: readonly string[]
  body: Buffer | string
}

/** Returns the signing key of one day. It is kept, because making it takes longer than the rest of a request. */
type SigningKeys = (secret: string, day: string, place: SigningPlace) => Buffer

const algorithm = 'AWS4-HMAC-SHA256'

/**
 * Signed headers that are not AWS's own. Google requires `x-goog-cloud-target-resource` in a request to AWS
 * (google-auth 2.63, `aws.py`).
 */
const signedNames = new Set(['content-type', 'x-goog-cloud-target-resource'])

/**
 * Signs a request by AWS Signature Version 4
 * (docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html, 2026-11). The signature covers
 * `host`, `signedNames`, and all headers that begin with `x-amz`, because a proxy changes none of them.
 * @param nowMs Unix milliseconds by the clock of AWS, which accepts a difference of five minutes
 * @returns the headers to add; each value follows its name
 */
export function signRequest(
  request: SignableRequest,
  { id, secret, token }: AwsCredentials,
  place: SigningPlace,
  nowMs: number,
  keys: SigningKeys = makeSigningKey,
): readonly (readonly [name: string, value: string])[] {
  const date = amzDate(nowMs)
  const added: [string, string][] = [['x-amz-date', date]]
  if (token !== undefined) added.push(['x-amz-security-token', token])
  const signed = new Map<string, string>([['host', request.host], ...added])
  for (let i = 0; i < request.headers.length; i += 2) {
    const name = request.headers[i]!.toLowerCase()
    if (signedNames.has(name) || name.startsWith('x-amz')) signed.set(name, request.headers[i + 1]!)
  }
  const names = [...signed.keys()].sort()
  const lines = names.map((name) => `${name}:${signed.get(name)!.trim().replace(/\s+/g, ' ')}`)
  const [path = '', query = ''] = splitOnce(request.path, '?')
  const digest = hash('sha256', request.body, 'hex')
  const canonical = [request.method, canonicalPath(path), canonicalQuery(query), ...lines, '', names.join(';'), digest]
  const scope = scopeOf(date, place)
  const signature = createHmac('sha256', keys(secret, date.slice(0, 8), place)).update(
    textToSign(date, scope, canonical),
  )
  const authorization = `${algorithm} Credential=${id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature.digest('hex')}`
  return [...added, ['authorization', authorization]]
}

/** The longest lifetime of a minted bearer key that AWS allows, in seconds. */
export const bearerSecondsMax = 43_200

/**
 * Mints a short-term key of Bedrock: a presigned URL of `CallWithBearerToken` (aws-bedrock-token-generator 1.1.0,
 * 2025-07). The key expires with the credentials, or earlier.
 * @param nowMs as for `signRequest`
 */
export function mintBearer({ id, secret, token }: AwsCredentials, region: string, nowMs: number): string {
  const host = 'bedrock.amazonaws.com'
  const place = { region, service: 'bedrock' }
  const date = amzDate(nowMs)
  const scope = scopeOf(date, place)
  const query = [
    ['Action', 'CallWithBearerToken'],
    ['X-Amz-Algorithm', algorithm],
    ['X-Amz-Credential', `${id}/${scope}`],
    ['X-Amz-Date', date],
    ['X-Amz-Expires', `${bearerSecondsMax}`],
    ['X-Amz-SignedHeaders', 'host'],
    ...(token === undefined ? [] : [['X-Amz-Security-Token', token]]),
  ].map((pair) => pair.map(encode).join('='))
  const canonical = ['POST', '/', query.toSorted().join('&'), `host:${host}`, '', 'host', hash('sha256', '', 'hex')]
  const key = makeSigningKey(secret, date.slice(0, 8), place)
  const signature = createHmac('sha256', key)
    .update(textToSign(date, scope, canonical))
    .digest('hex')
  const url = `${host}/?${query.join('&')}&X-Amz-Signature=${signature}&Version=1`
  return `bedrock-api-key-${Buffer.from(url).toString('base64')}`
}

/** Returns a function that makes signing keys and keeps the last one. */
export function keepSigningKey(): SigningKeys {
  let last: { secret: string; day: string; place: SigningPlace; key: Buffer } | undefined
  return (secret, day, place) => {
    if (last?.secret !== secret || last.day !== day || last.place !== place)
      last = { secret, day, place, key: makeSigningKey(secret, day, place) }
    return last.key
  }
}

function makeSigningKey(secret: string, day: string, { region, service }: SigningPlace): Buffer {
  let key = Buffer.from(`AWS4${secret}`)
  for (const step of [day, region, service, 'aws4_request']) key = createHmac('sha256', key).update(step).digest()
  return key
}

function scopeOf(date: string, { region, service }: SigningPlace): string {
  return `${date.slice(0, 8)}/${region}/${service}/aws4_request`
}

/** Values of headers are sent in Latin-1, so the text to sign is digested in Latin-1 too. */
function textToSign(date: string, scope: string, canonical: readonly string[]): string {
  return [algorithm, date, scope, hash('sha256', Buffer.from(canonical.join('\n'), 'latin1'), 'hex')].join('\n')
}

/** Formats a time as `20261127T010203Z`. */
function amzDate(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d+/g, '')
}

/** Removes dots and empty segments from the sent path, and encodes it once more, as AWS requires except for S3. */
function canonicalPath(path: string): string {
  const kept: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '.' && segment !== '') kept.push(encode(segment))
  }
  const isFolder = kept.length > 0 && path.endsWith('/')
  return `/${kept.join('/')}${isFolder ? '/' : ''}`
}

/** Sorts the parameters of a query string by their encoded names, then by their encoded values. */
function canonicalQuery(query: string): string {
  const pairs = query.split('&').filter(Boolean)
  return pairs
    .map((pair) => splitOnce(pair, '='))
    .map(([name = '', value = '']) => [encodeAnew(name), encodeAnew(value)] as const)
    .sort(([name, value], [other, otherValue]) => compare(name, other) || compare(value, otherValue))
    .map((pair) => pair.join('='))
    .join('&')
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}

/**
 * Encodes a part of a query by the rules of AWS. A client may have encoded the URL by other rules, which leave `!` as
 * it is. A malformed escape is signed as text.
 */
function encodeAnew(text: string): string {
  try {
    return encode(decodeURIComponent(text))
  } catch {
    return encode(text)
  }
}

/** Percent-encodes all but letters, digits and `-._~` (RFC 3986 2.3). */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

function splitOnce(text: string, mark: string): string[] {
  const at = text.indexOf(mark)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}
