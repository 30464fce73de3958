import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signRequest } from '../../src/clouds/sigv4.ts'
import { type RawRequest, type RawUpstream, startRawUpstream, whole } from './raw-upstream.ts'

/* A stub of the clouds' endpoints for credentials, on loopback. Secrets contain the word canary. */

export type StubCloud = {
  upstream: RawUpstream
  url: string
  host: string
  /** The lifetime of credentials, and how far the clock of the cloud is ahead, both in s. */
  lifeSeconds: number
  aheadSeconds: number
  /** The status of every response, if all requests are refused. */
  refuses: number | undefined
  /** True: no request gets a response. */
  isSilent: boolean
  /** Invalid requests, which the stub refused. */
  mistakes: string[]
  /** The number of issued credentials. Each contains its number. */
  given: number
  nowMs: () => number
}

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
export const canary = 'canary-secret'
export const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString()

export const roleArn = 'arn:aws:iam::123456789012:role/llm'

/** Starts the stub for all clouds. @param nowMs the clock of the test */
export async function startCloud(nowMs: () => number): Promise<StubCloud> {
  const upstream = await startRawUpstream()
  const cloud: StubCloud = {
    ...{ upstream, url: upstream.url, host: upstream.url.slice(7), lifeSeconds: 3_600, aheadSeconds: 0 },
    ...{ refuses: undefined, isSilent: false, mistakes: [], given: 0, nowMs },
  }
  upstream.play((socket, request) => {
    if (cloud.isSilent) return
    const date = new Date(nowOf(cloud)).toUTCString()
    const say = (body: string | object, status = 200, headers = {}) =>
      whole(body, status, { date, ...headers })(socket, request)
    if (cloud.refuses !== undefined) return say({ error: 'refused', error_description: `no ${canary}` }, cloud.refuses)
    const handle = Object.entries(endpoints).find(([path]) => request.path.startsWith(path))?.[1]
    const answer = handle?.(cloud, request, new URLSearchParams(request.body.toString()))
    if (answer === undefined || typeof answer === 'number' || request.header('host') !== cloud.host) {
      cloud.mistakes.push(`${request.method} ${request.path} ${request.body.toString().slice(0, 300)}`)
      return say({ error: 'invalid', Code: 'invalid' }, typeof answer === 'number' ? answer : 400)
    }
    return say(answer.body, 200, answer.headers)
  })
  return cloud
}

function nowOf({ nowMs, aheadSeconds }: StubCloud): number {
  return nowMs() + aheadSeconds * 1_000
}

type Given = { body: string | object; headers?: Record<string, string> }
type Endpoint = (cloud: StubCloud, request: RawRequest, form: URLSearchParams) => Given | number | undefined

const endOf = (cloud: StubCloud) => new Date(nowOf(cloud) + cloud.lifeSeconds * 1_000).toISOString()

function awsKeys(cloud: StubCloud, token: string, more = {}): Given {
  const n = ++cloud.given
  const keys = { AccessKeyId: `ASIA${n}`, SecretAccessKey: `${canary}-${n}`, [token]: `${canary}-token-${n}` }
  return { body: { Code: 'Success', ...keys, ...more, Expiration: endOf(cloud) } }
}

function oauth(cloud: StubCloud, isText = false): Given {
  const seconds = isText ? `${cloud.lifeSeconds}` : cloud.lifeSeconds
  return { body: { access_token: `${canary}-token-${++cloud.given}`, expires_in: seconds, token_type: 'Bearer' } }
}

/** The endpoints by the beginning of their paths. */
const endpoints: Record<string, Endpoint> = {
  '/latest/api/token': (_, { method, header }) =>
    method === 'PUT' && header('x-aws-ec2-metadata-token-ttl-seconds') === '21600' ? { body: 'imds-token' } : undefined,
  '/latest/meta-data/iam/security-credentials/': (cloud, { path, header }) => {
    if (header('x-aws-ec2-metadata-token') !== 'imds-token') return 401
    return path.endsWith('/') ? { body: 'the-role' } : awsKeys(cloud, 'Token')
  },
  '/container': (cloud, { header }) =>
    header('authorization') === 'container-word' ? awsKeys(cloud, 'Token', { RoleArn: roleArn }) : 401,
  '/computeMetadata/v1/instance/service-accounts/default/': (cloud, { path, header }) => {
    if (header('metadata-flavor') !== 'Google') return 403
    const headers = { 'metadata-flavor': 'Google' }
    return path.endsWith('/email') ? { body: 'vm@p.iam', headers } : { ...oauth(cloud), headers }
  },
  '/google/token': (cloud, _, form) => {
    const assertion = form.get('assertion') ?? ''
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') return undefined
    return isGoodAssertion(assertion, cloud) ? oauth(cloud) : undefined
  },
  '/google/exchange': (cloud, _, form) => {
    const fields = Object.fromEntries(form)
    const isExchange =
      fields['grant_type'] === 'urn:ietf:params:oauth:grant-type:token-exchange' &&
      fields['audience'] === '//iam.googleapis.com/pool' &&
      fields['requested_token_type'] === 'urn:ietf:params:oauth:token-type:access_token' &&
      /^https:\/\/www\.googleapis\.com\/auth\/(?:cloud-platform|iam)$/.test(fields['scope'] ?? '')
    return isExchange && isGoodSubject(fields['subject_token'] ?? '') ? oauth(cloud) : undefined
  },
  '/google/serviceAccounts/': (cloud, { header, json }) => {
    const { scope, lifetime } = json()
    const isRight = /^Bearer canary-secret-token-\d+$/.test(header('authorization') ?? '')
    if (!isRight || `${scope}` !== 'https://www.googleapis.com/auth/cloud-platform' || lifetime !== '3600s')
      return undefined
    return { body: { accessToken: `${canary}-token-${++cloud.given}`, expireTime: endOf(cloud) } }
  },
  '/subject': (_, { header }) => (header('x-word') === 'on' ? { body: { the_token: 'subject-word' } } : 403),
  '/the-tenant/oauth2/v2.0/token': (cloud, _, form) => {
    const { grant_type: grant, client_id: client, scope, ...proof } = Object.fromEntries(form)
    if (grant !== 'client_credentials' || client !== 'the-client' || scope !== 'https://ai.azure.com/.default')
      return undefined
    const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
    const isSecret = proof['client_secret'] === `${canary}-client`
    const isAssertion = proof['client_assertion'] === 'federated-word' && proof['client_assertion_type'] === type
    return isSecret || isAssertion ? oauth(cloud) : 401
  },
  '/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fai.azure.com': (cloud, { header }) =>
    header('x-identity-header') === 'identity-word'
      ? {
          body: {
            access_token: `${canary}-token-${++cloud.given}`,
            expires_on: `${Math.floor(Date.parse(endOf(cloud)) / 1_000)}`,
          },
        }
      : undefined,
  '/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fai.azure.com&client_id=the-client': (
    cloud,
    { header },
  ) => (header('metadata') === 'true' ? oauth(cloud, true) : undefined),
  '/': (cloud, request, form) => askSts(cloud, request, form),
}

function askSts(cloud: StubCloud, request: RawRequest, form: URLSearchParams): Given | number | undefined {
  const { Action: action, RoleArn: role, Version: version, WebIdentityToken: token } = Object.fromEntries(form)
  if (version !== '2011-06-15') return undefined
  const isSigned = request.header('authorization') !== undefined
  if (action !== 'AssumeRoleWithWebIdentity' && !isSignedWell(cloud, request)) return 403
  if (action === 'GetCallerIdentity')
    return { body: `<R><Arn>arn:aws:sts::123456789012:assumed-role/llm/triwire</Arn></R>` }
  const isRole = action === 'AssumeRole' && isSigned && role === roleArn && form.get('ExternalId') !== 'wrong'
  const isToken = action === 'AssumeRoleWithWebIdentity' && !isSigned && /^web-word-\d$/.test(token ?? '')
  if (!isRole && !isToken) return 403
  const n = ++cloud.given
  const keys = `<AccessKeyId>ASIA${n}</AccessKeyId><SecretAccessKey>${canary}-${n}</SecretAccessKey><SessionToken>${canary}-token-${n}</SessionToken>`
  const user = '<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/llm/triwire</Arn></AssumedRoleUser>'
  return {
    body: `<${action}Response><${action}Result><Credentials>${keys}<Expiration>${endOf(cloud)}</Expiration></Credentials>${user}</${action}Result></${action}Response>`,
  }
}

/** Returns the secret of a key id: `AKIA…` are in files and variables, `ASIA<n>` were issued by the stub. */
function secretOf(id: string): string {
  return id.startsWith('ASIA') ? `${canary}-${id.slice(4)}` : `${canary}-file`
}

/** Whether a request has a valid signature, whose time differs from the cloud's clock by at most five minutes. */
export function isSignedWell(cloud: Pick<StubCloud, 'nowMs' | 'aheadSeconds' | 'host'>, request: RawRequest): boolean {
  const said = request.header('authorization') ?? ''
  const [, id = '', , region = '', service = ''] =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/([\w-]+)\/([\w-]+)\/aws4_request, SignedHeaders=/.exec(said) ?? []
  const date = request.header('x-amz-date') ?? ''
  const ms = Date.parse(date.replace(/(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z/, '$1-$2-$3T$4:$5:$6Z'))
  const nowMs = cloud.nowMs() + cloud.aheadSeconds * 1_000
  if (!(Math.abs(ms - nowMs) <= 300_000)) return false
  const token = request.header('x-amz-security-token')
  const headers = request.headers.filter(([name]) => name !== 'x-amz-date' && name !== 'x-amz-security-token').flat()
  const { method, path, body } = request
  const own = signRequest(
    { method, path, headers, body, host: request.header('host')! },
    { id, secret: secretOf(id), ...(token !== undefined && { token }) },
    { region, service },
    ms,
  )
  return new Map(own).get('authorization') === said
}

function isGoodAssertion(assertion: string, cloud: StubCloud): boolean {
  const [head = '', claims = '', signature = ''] = assertion.split('.')
  const key = createPublicKey(publicPem)
  if (!verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))) return false
  const { alg, kid } = JSON.parse(Buffer.from(head, 'base64url').toString())
  const { iss, scope, aud, iat, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  const isFresh = Math.abs(iat - nowOf(cloud) / 1_000) < 300 && exp - iat <= 3_600
  const isWhole = alg === 'RS256' && kid === 'key-1' && iss === 'llm@p.iam.gserviceaccount.com'
  return (
    isFresh &&
    isWhole &&
    scope === 'https://www.googleapis.com/auth/cloud-platform' &&
    aud === `${cloud.url}/google/token`
  )
}

/** Whether a subject token is valid: the text of a file or an address, or a signed request to AWS. */
function isGoodSubject(subject: string): boolean {
  if (subject === 'subject-word') return true
  if (!subject.startsWith('%7B')) return false
  const { url, method, headers } = JSON.parse(decodeURIComponent(subject))
  const names = new Map(headers.map(({ key, value }: { key: string; value: string }) => [key, value]))
  const authorization = `${names.get('authorization')}`
  return (
    method === 'POST' &&
    url === 'https://sts.eu-central-1.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15' &&
    names.get('x-goog-cloud-target-resource') === '//iam.googleapis.com/pool' &&
    /SignedHeaders=host;x-amz-date;x-goog-cloud-target-resource,/.test(authorization)
  )
}

/** Writes the file of a service account. @returns its path */
export function writeServiceAccount(
  folder: string,
  cloud: Pick<StubCloud, 'url'>,
  more: Record<string, unknown> = {},
): string {
  const path = join(folder, 'service-account.json')
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const account = { type: 'service_account', client_email: 'llm@p.iam.gserviceaccount.com', private_key: key }
  writeFileSync(
    path,
    JSON.stringify({ ...account, private_key_id: 'key-1', token_uri: `${cloud.url}/google/token`, ...more }),
  )
  return path
}

/** Writes the file of a workload identity federation. @returns its path */
export function writeExternalAccount(
  folder: string,
  cloud: Pick<StubCloud, 'url'>,
  more: Record<string, unknown>,
): string {
  const path = join(folder, 'external-account.json')
  const account = {
    ...{ type: 'external_account', audience: '//iam.googleapis.com/pool', token_url: `${cloud.url}/google/exchange` },
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }
  writeFileSync(path, JSON.stringify({ ...account, ...more }))
  return path
}
