import { signJwt } from '../../clouds/jwt.ts'
import { type AwsCredentials, signRequest } from '../../clouds/sigv4.ts'
import { regionOf } from '../../config/clouds.ts'
import type { GoogleAccount } from '../../config/config.ts'
import { takeAws } from './aws.ts'
import {
  askSource,
  type CloudToken,
  formOf,
  lifeUntil,
  readMembers,
  readOAuth,
  readSource,
  runSource,
  type SourceAround,
} from './sources.ts'

const scope = 'https://www.googleapis.com/auth/cloud-platform'
/** The scope of a token that only serves to get the token of a service account (google-auth 2.63). */
const takingScope = 'https://www.googleapis.com/auth/iam'
const metadataHosts = new Set(['metadata.google.internal', '169.254.169.254', '[fd20:ce::254]'])
/** The longest life that Google gives a token, in seconds. */
const lifeSeconds = 3_600

/** A file of credentials, whose members are checked by its reader. */
type CredentialsFile = Record<string, unknown>

type FileReader = (said: CredentialsFile, around: SourceAround) => Promise<CloudToken>

/** For each `type` of a credentials file, the function that gets a token with the file (google-auth 2.63). */
const readers: Readonly<Record<string, FileReader>> = {
  service_account: takeServiceAccount,
  external_account: takeFederated,
}

/**
 * Gets a token of Google. The account or `GOOGLE_APPLICATION_CREDENTIALS` names the file of credentials. If neither
 * names a file, the metadata server is asked.
 * @throws Error in words for operators, without a secret
 */
export async function takeGoogle({ credentialsFile }: GoogleAccount, around: SourceAround): Promise<CloudToken> {
  const file = credentialsFile ?? (around.env['GOOGLE_APPLICATION_CREDENTIALS'] || undefined)
  if (file === undefined) return takeMetadata(around)
  const said = readMembers(await readSource(file, 'the file of credentials'), `the file ${file}`, ['type'])
  const read = Object.hasOwn(readers, said.type) ? readers[said.type] : undefined
  if (!read)
    throw new Error(
      `the file ${file} has the type ${said.type}: known are ${Object.keys(readers).join(' and ')}; for others use key_command`,
    )
  const token = await read(said, around)
  const project = said['quota_project_id']
  if (typeof project !== 'string' || !('bearer' in token.use)) return token
  return { ...token, use: { ...token.use, headers: [['x-goog-user-project', project]] } }
}

/** Exchanges a signed assertion for a token (RFC 7523). */
async function takeServiceAccount(said: CredentialsFile, around: SourceAround): Promise<CloudToken> {
  const where = 'the file of the service account'
  const account = readMembers(JSON.stringify(said), where, ['client_email', 'private_key', 'token_uri'])
  const ask = () => {
    const seconds = Math.floor(around.nowMs() / 1_000)
    const claims = {
      iss: account.client_email,
      scope,
      aud: account.token_uri,
      iat: seconds,
      exp: seconds + lifeSeconds,
    }
    const key = account['private_key_id']
    const assertion = assertionOf(typeof key === 'string' ? { kid: key } : {}, claims, account.private_key)
    const grant = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
    return askSource(around, account.token_uri, formOf({ grant_type: grant, assertion }))
  }
  const before = around.nowMs()
  const { text } = await ask().catch((error) => {
    // The `Date` of the refusal may have corrected our time. After a correction of a minute or more, one new assertion
    // is sent.
    if (Math.abs(around.nowMs() - before) < 60_000) throw error
    return ask()
  })
  const { bearer, lifeMs } = readOAuth(text, 'the answer of Google')
  return { use: { bearer }, source: 'service account', identity: account.client_email, lifeMs }
}

function assertionOf(header: Record<string, string>, claims: Record<string, unknown>, key: string): string {
  try {
    return signJwt(header, claims, key)
  } catch {
    throw new Error('the file of the service account has a private_key that cannot be read')
  }
}

async function takeMetadata(around: SourceAround): Promise<CloudToken> {
  const host = around.env['GCE_METADATA_HOST'] || 'metadata.google.internal'
  const address = `http://${host}/computeMetadata/v1/instance/service-accounts/default/`
  const asked = { headers: { 'metadata-flavor': 'Google' }, metadata: metadataHosts }
  try {
    const answer = await askSource(around, `${address}token`, asked)
    if (answer.header('metadata-flavor') !== 'Google')
      throw new Error(`the server at ${host} is not the metadata server`)
    const { bearer, lifeMs } = readOAuth(answer.text, 'the answer of the metadata server')
    const email = await askSource(around, `${address}email`, asked).then(
      ({ text }) => text.trim(),
      () => 'default',
    )
    return { use: { bearer }, source: 'metadata server', identity: email, lifeMs }
  } catch (error) {
    throw new Error(`no file of credentials is named, and ${(error as Error).message}`)
  }
}

/**
 * Exchanges a token of another provider (RFC 8693). If the file names a service account, the new token is used to get a
 * token of that account.
 */
async function takeFederated(said: CredentialsFile, around: SourceAround): Promise<CloudToken> {
  const where = 'the file of the external account'
  const file = readMembers(JSON.stringify(said), where, ['audience', 'subject_token_type', 'token_url'])
  const subject = await takeSubject(file, where, around)
  const address = file['service_account_impersonation_url']
  const form = formOf({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    audience: file.audience,
    subject_token: subject,
    subject_token_type: file.subject_token_type,
    scope: typeof address === 'string' ? takingScope : scope,
  })
  const { text } = await askSource(around, file.token_url, form)
  const { bearer, lifeMs } = readOAuth(text, 'the answer of the token exchange')
  const source = 'workload identity federation'
  if (typeof address !== 'string') return { use: { bearer }, source, identity: file.audience, lifeMs }
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ delegates: null, scope: [scope], lifetime: `${lifeSeconds}s` })
  const answer = await askSource(around, address, { method: 'POST', headers, body })
  const token = readMembers(answer.text, 'the answer of the service account', ['accessToken', 'expireTime'])
  const [, email = address] = /serviceAccounts\/([^:/]+)/.exec(address) ?? []
  const rest = lifeUntil(token.expireTime, around, 'the answer of the service account')
  return { use: { bearer: token.accessToken }, source, identity: email, lifeMs: rest }
}

type FederationFile = Record<'audience' | 'subject_token_type', string> & Record<string, unknown>

/** Gets the federated provider's token from a file, a URL or a program. For AWS, the token is a signed request. */
async function takeSubject(file: FederationFile, where: string, around: SourceAround): Promise<string> {
  const source = (file['credential_source'] ?? {}) as Record<string, unknown>
  const format = (source['format'] ?? {}) as Record<string, unknown>
  const unpack = (text: string) => {
    if (format['type'] !== 'json') return text.trim()
    const field = `${format['subject_token_field_name']}`
    return readMembers(text, 'the subject token', [field])[field]!
  }
  if (typeof source['environment_id'] === 'string') return signForAws(file.audience, source, around)
  if (typeof source['file'] === 'string') return unpack(await readSource(source['file'], 'the subject token'))
  if (typeof source['url'] === 'string') {
    const headers = source['headers'] as Record<string, string> | undefined
    return unpack((await askSource(around, source['url'], { ...(headers && { headers }), metadata: 'link' })).text)
  }
  const command = (source['executable'] as Record<string, unknown> | undefined)?.['command']
  if (typeof command === 'string') return askProgram(command, file, around)
  throw new Error(`${where} has a credential_source that is not known`)
}

/** Runs the program that supplies the token of an external account, as google-auth 2.63 does (`pluggable.py`). */
async function askProgram(command: string, file: FederationFile, around: SourceAround): Promise<string> {
  const consent = 'GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES'
  if (around.env[consent] !== '1')
    throw new Error(`the file of the external account names a program, which needs ${consent}=1`)
  const wishes = {
    GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE: file.audience,
    GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE: file.subject_token_type,
    GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE: '0',
  }
  const where = 'the output of the program of the external account'
  const name = file.subject_token_type.endsWith(':saml2') ? 'saml_response' : 'id_token'
  return readMembers(await runSource(around, command, wishes), where, [name])[name]!
}

/** Returns a signed `GetCallerIdentity` request, which Google sends in our place (google-auth 2.63, `aws.py`). */
async function signForAws(audience: string, source: Record<string, unknown>, around: SourceAround): Promise<string> {
  const region = regionOf(around.env)
  if (!region) throw new Error('AWS_REGION is not set: the signature for Google needs it')
  const { use } = await takeAws({ kind: 'aws', region, service: 'sts', sign: 'request' }, around)
  const usual = 'https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15'
  const address = `${source['regional_cred_verification_url'] ?? usual}`.replaceAll('{region}', region)
  const url = new URL(address)
  const target = ['x-goog-cloud-target-resource', audience]
  const request = { method: 'POST', host: url.host, path: url.pathname + url.search, headers: target, body: '' }
  const signed = signRequest(request, use as AwsCredentials, { region, service: 'sts' }, around.nowMs())
  const headers = [['host', url.host], target, ...signed].map(([key, value]) => ({ key, value }))
  return encodeURIComponent(JSON.stringify({ url: address, method: 'POST', headers }))
}
