import { homedir } from 'node:os'
import { join } from 'node:path'
import { type AwsCredentials, signRequest } from '../../clouds/sigv4.ts'
import { awsDomainOf } from '../../config/clouds.ts'
import type { AwsAccount } from '../../config/config.ts'
import {
  askSource,
  type CloudSource,
  type CloudToken,
  formOf,
  lifeUntil,
  readMembers,
  readSource,
  runSource,
  type SourceAround,
  takeFirst,
} from './sources.ts'

/**
 * Hosts of the metadata services of machines and of containers, IPv4 and IPv6 (docs.aws.amazon.com/sdkref, 2026-11).
 */
const machineHosts = new Set(['169.254.169.254', '[fd00:ec2::254]'])
const containerHosts = new Set(['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]'])
const silentMachine = 'in a container the hop limit of the instance must be 2'

/**
 * The credential sources, in the order in which they are tried. The profile in the account's settings comes first. The
 * others have the order of AWS's tools (botocore 1.44.8, `credentials.py`).
 */
const awsSources: readonly CloudSource<AwsAccount>[] = [
  {
    name: 'profile',
    applies: ({ profile }) => profile !== undefined,
    take: ({ profile, region }, around) => takeProfile(profile!, region, around),
  },
  {
    name: 'environment',
    applies: (_, { env }) => !!env['AWS_ACCESS_KEY_ID'] || !!env['AWS_SECRET_ACCESS_KEY'],
    take: async (_, around) => takeEnvironment(around),
  },
  {
    name: 'profile of the environment',
    applies: (_, { env }) => !!env['AWS_PROFILE'],
    take: ({ region }, around) => takeProfile(around.env['AWS_PROFILE']!, region, around),
  },
  {
    name: 'web identity',
    applies: (_, { env }) => !!env['AWS_WEB_IDENTITY_TOKEN_FILE'],
    take: ({ region }, around) => {
      const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: role, AWS_ROLE_SESSION_NAME: session } = around.env
      if (!role) throw new Error('AWS_ROLE_ARN is not set beside AWS_WEB_IDENTITY_TOKEN_FILE')
      return assumeByToken({ file: file!, role, session, region }, around)
    },
  },
  {
    name: 'shared files',
    applies: () => true,
    take: ({ region }, around) => takeDefault(region, around),
  },
  {
    name: 'container',
    applies: (_, { env }) =>
      !!env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'] || !!env['AWS_CONTAINER_CREDENTIALS_FULL_URI'],
    take: (_, around) => takeContainer(around),
  },
  {
    name: 'instance metadata',
    applies: (_, { env }) => env['AWS_EC2_METADATA_DISABLED']?.toLowerCase() !== 'true',
    take: (_, around) => takeMachine(around),
  },
]

/**
 * Takes credentials of AWS. If the account names a role, the credentials of the role are returned.
 * @throws Error that says which credentials were looked for
 */
export async function takeAws(account: AwsAccount, around: SourceAround): Promise<CloudToken> {
  const { role, externalId, region, sessionName: session } = account
  const base = await takeFirst(awsSources, account, around)
  if (!base) throw new Error('there are no credentials of AWS: set `profile`, or the variables of AWS')
  return role === undefined ? base : assumeRole(base, { role, externalId, region, session }, around)
}

/** Returns the ARN of the identity that credentials belong to. @throws as `askSource` */
export async function identifyAws(credentials: AwsCredentials, region: string, around: SourceAround): Promise<string> {
  const text = await askSts(credentials, region, { Action: 'GetCallerIdentity' }, around)
  return elementOf(text, 'Arn', 'STS')
}

function takeEnvironment({ env }: SourceAround): CloudToken {
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token } = env
  if (!id || !secret) throw new Error('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must both be set')
  const use = { id, secret, ...(token && { token }) }
  return { use, source: 'environment', identity: id, lifeMs: undefined }
}

/**
 * Reads credentials from JSON. A command names its session token `SessionToken`, a metadata service `Token`. Temporary
 * credentials get another id at each renewal, so their identity is the role, or else the source.
 */
function readCredentials(text: string, where: string, around: SourceAround): CloudToken {
  const said = readMembers(text, where, ['AccessKeyId', 'SecretAccessKey'])
  const token = said['SessionToken'] ?? said['Token']
  const use = {
    id: said.AccessKeyId,
    secret: said.SecretAccessKey,
    ...(typeof token === 'string' && token && { token }),
  }
  const lifeMs = lifeUntil(said['Expiration'], around, where)
  return { use, source: where, identity: lifeMs === undefined ? use.id : `${said['RoleArn'] ?? where}`, lifeMs }
}

async function takeContainer(around: SourceAround): Promise<CloudToken> {
  const { env } = around
  const relative = env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']
  const file = env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']
  const token = file ? await readSource(file, 'the token of the container') : env['AWS_CONTAINER_AUTHORIZATION_TOKEN']
  const address = relative ? `http://169.254.170.2${relative}` : env['AWS_CONTAINER_CREDENTIALS_FULL_URI']!
  const headers = { accept: 'application/json', ...(token && { authorization: token.trim() }) }
  const { text } = await askSource(around, address, { headers, metadata: containerHosts })
  return readCredentials(text, 'container', around)
}

/** Asks the instance metadata service, version 2 only: each request has a token that was fetched with PUT. */
async function takeMachine(around: SourceAround): Promise<CloudToken> {
  const base = (around.env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] || 'http://169.254.169.254').replace(/\/+$/, '')
  const metadata = machineHosts
  try {
    const lifetime = { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' }
    const put = { method: 'PUT', headers: lifetime, metadata }
    const { text: token } = await askSource(around, `${base}/latest/api/token`, put)
    const headers = { 'x-aws-ec2-metadata-token': token.trim() }
    const place = `${base}/latest/meta-data/iam/security-credentials/`
    const { text: roles } = await askSource(around, place, { headers, metadata })
    const role = roles.trim().split('\n')[0]!
    const { text } = await askSource(around, place + encodeURIComponent(role), { headers, metadata })
    const { Code: code = 'Success' } = readMembers(text, 'instance metadata', [])
    if (code !== 'Success') throw new Error(`the role of the instance is not ready (${code})`)
    return { ...readCredentials(text, 'instance metadata', around), identity: role }
  } catch (error) {
    throw new Error(
      `no credentials of AWS in the settings or the environment, and ${(error as Error).message}; ${silentMachine}`,
    )
  }
}

type RoleWish = {
  role: string
  region: string
  session?: string | undefined
  externalId?: string | undefined
  seconds?: string | undefined
}

async function assumeRole(base: CloudToken, wish: RoleWish, around: SourceAround): Promise<CloudToken> {
  const fields = {
    Action: 'AssumeRole',
    RoleArn: wish.role,
    RoleSessionName: wish.session || 'triwire',
    ExternalId: wish.externalId,
    DurationSeconds: wish.seconds,
  }
  const text = await askSts(base.use as AwsCredentials, wish.region, fields, around)
  return { ...readRole(text, around), source: `role over ${base.source}` }
}

/** Assumes an AWS role with a web identity token. The token is read anew each time, because it rotates. */
async function assumeByToken(wish: RoleWish & { file: string }, around: SourceAround): Promise<CloudToken> {
  const token = (await readSource(wish.file, 'the web identity token')).trim()
  const fields = {
    Action: 'AssumeRoleWithWebIdentity',
    RoleArn: wish.role,
    RoleSessionName: wish.session || 'triwire',
    WebIdentityToken: token,
    DurationSeconds: wish.seconds,
  }
  const text = await askSts(undefined, wish.region, fields, around)
  return { ...readRole(text, around), source: 'web identity' }
}

/** Sends a request to STS. @param credentials undefined for a request that is not signed */
async function askSts(
  credentials: AwsCredentials | undefined,
  region: string,
  fields: Record<string, string | undefined>,
  around: SourceAround,
): Promise<string> {
  const usual = `https://sts.${region}.${awsDomainOf(region)}`
  const base = (around.env['AWS_ENDPOINT_URL_STS'] || usual).replace(/\/+$/, '')
  const form = formOf({ ...fields, Version: '2011-06-15' })
  const url = URL.parse(`${base}/`)
  const ask = async () => {
    const request = { method: 'POST', host: url?.host ?? '', path: url?.pathname ?? '/', body: form.body! }
    const signed = credentials
      ? signRequest(
          { ...request, headers: Object.entries(form.headers!).flat() },
          credentials,
          { region, service: 'sts' },
          around.nowMs(),
        )
      : []
    const { text } = await askSource(around, `${base}/`, {
      ...form,
      headers: { ...form.headers, ...Object.fromEntries(signed) },
    })
    return text
  }
  const before = around.nowMs()
  try {
    return await ask()
  } catch (error) {
    // The refusal showed the cloud's time. If our clock was wrong, the request is signed again with the cloud's time.
    if (!credentials || Math.abs(around.nowMs() - before) < 60_000) throw error
    return ask()
  }
}

function readRole(text: string, around: SourceAround): Omit<CloudToken, 'source'> {
  const [id = '', secret = '', token = '', end = '', arn = ''] = [
    'AccessKeyId',
    'SecretAccessKey',
    'SessionToken',
    'Expiration',
    'Arn',
  ].map((name) => elementOf(text, name, 'STS'))
  return { use: { id, secret, token }, identity: arn, lifeMs: lifeUntil(end, around, 'STS') }
}

/** Returns the text of the first element with this name. STS writes no entities in the elements that are read here. */
function elementOf(xml: string, name: string, where: string): string {
  const [, text] = new RegExp(`<${name}>([^<]+)</${name}>`).exec(xml) ?? []
  if (text === undefined) throw new Error(`the answer of ${where} has no ${name}`)
  return text.trim()
}

type Profiles = ReadonlyMap<string, ReadonlyMap<string, string>>

async function takeProfile(name: string, region: string, around: SourceAround): Promise<CloudToken> {
  return resolveProfile(name, { profiles: await readProfiles(around), region, around, seen: [] })
}

/** Takes the credentials of the profile `default`. Undefined if there is no such profile, or it has no credentials. */
async function takeDefault(region: string, around: SourceAround): Promise<CloudToken | undefined> {
  const profiles = await readProfiles(around).catch(() => undefined)
  const keys = [...(profiles?.get('default')?.keys() ?? [])]
  const isSource = keys.some((key) => giving.test(key) || interactive.test(key))
  return isSource ? resolveProfile('default', { profiles: profiles!, region, around, seen: [] }) : undefined
}

/** Keys by which a profile gives credentials. */
const giving = /^(?:aws_access_key_id|aws_secret_access_key|role_arn|credential_process)$/
/** Keys of profiles for people who sign in with a browser (`aws sso login`, `aws login`). */
const interactive = /^(?:sso_|login_session$)/

type ProfileWalk = { profiles: Profiles; region: string; around: SourceAround; seen: readonly string[] }

/**
 * Takes the credentials of a profile: of its role, else its keys, else those of its command. If the profile is the
 * source of a role, its keys come before its own role. AWS's own tools have the same order.
 */
async function resolveProfile(name: string, walk: ProfileWalk): Promise<CloudToken> {
  const { profiles, around, seen } = walk
  const profile = profiles.get(name)
  if (!profile) throw new Error(`the profile ${name} is in neither of AWS's shared files`)
  const [id, secret, token] = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'].map((key) =>
    profile.get(key),
  )
  const role = profile.get('role_arn')
  const hasKeys = id !== undefined && secret !== undefined
  // The source of another role gives its own keys, although it may have a role too. A profile may be its own source.
  if (role !== undefined && !(seen.length > 0 && hasKeys)) return resolveRole(name, role, profile, walk)
  const source = `profile ${name}`
  if (hasKeys) return { use: { id, secret, ...(token && { token }) }, source, identity: id, lifeMs: undefined }
  const command = profile.get('credential_process')
  if (command !== undefined) {
    const read = readCredentials(await runSource(around, command), 'credential_process', around)
    return { ...read, source }
  }
  const isInteractive = [...profile.keys()].some((key) => interactive.test(key))
  throw new Error(
    isInteractive
      ? `the profile ${name} signs in interactively: give it \`credential_process = aws configure export-credentials --format process --profile …\` of another profile`
      : `the profile ${name} has neither keys, role_arn nor credential_process`,
  )
}

async function resolveRole(
  name: string,
  role: string,
  profile: ReadonlyMap<string, string>,
  walk: ProfileWalk,
): Promise<CloudToken> {
  const { around, seen } = walk
  const region = profile.get('region') ?? walk.region
  const wish = {
    ...{ role, region, session: profile.get('role_session_name'), externalId: profile.get('external_id') },
    seconds: profile.get('duration_seconds'),
  }
  if (profile.has('mfa_serial'))
    throw new Error(`the profile ${name} asks for an MFA code (mfa_serial), which cannot be entered here`)
  const file = profile.get('web_identity_token_file')
  if (file !== undefined) return assumeByToken({ ...wish, file }, around)
  const source = profile.get('source_profile')
  if (source !== undefined) {
    if (seen.includes(source)) throw new Error(`the profile ${name} is its own source`)
    return assumeRole(await resolveProfile(source, { ...walk, seen: [...seen, name] }), wish, around)
  }
  const take = namedSources.get(profile.get('credential_source') ?? '')
  if (!take)
    throw new Error(`the profile ${name} has a role_arn, and no source_profile or credential_source that is known`)
  return assumeRole(await take(around), wish, around)
}

/** The sources of credentials that a profile may name in `credential_source`. */
const namedSources = new Map<string, (around: SourceAround) => Promise<CloudToken>>([
  ['Environment', async (around) => takeEnvironment(around)],
  ['EcsContainer', takeContainer],
  ['Ec2InstanceMetadata', takeMachine],
])

/**
 * Reads the two files of AWS's tools. One of them may be missing. Values in the credentials file take precedence. Only
 * the configuration file has the word `profile` before a name, and quotes around a name with blanks.
 */
async function readProfiles({ env }: SourceAround): Promise<Profiles> {
  const home = join(env['HOME'] || homedir(), '.aws')
  const paths = [
    [env['AWS_CONFIG_FILE'] || join(home, 'config'), /^profile\s+(["']?)(.*)\1$/],
    [env['AWS_SHARED_CREDENTIALS_FILE'] || join(home, 'credentials'), /^(?!)/],
  ] as const
  const profiles = new Map<string, Map<string, string>>()
  const missing: Error[] = []
  for (const [path, heading] of paths) {
    const text = await readSource(path, 'the shared file').catch((error: Error) => {
      missing.push(error)
      return ''
    })
    for (const [section, values] of readSections(text)) {
      const name = section.replace(heading, '$2')
      profiles.set(name, new Map([...(profiles.get(name) ?? []), ...values]))
    }
  }
  if (missing.length === paths.length) throw missing[1]!
  return profiles
}

/** Reads `[section]` and `key = value`. Indented lines belong to nested settings, which are not needed here. */
function readSections(text: string): [section: string, values: Map<string, string>][] {
  const sections: [string, Map<string, string>][] = []
  for (const line of text.split(/\r?\n/)) {
    const [, section] = /^\[\s*([^\]]+?)\s*\]/.exec(line) ?? []
    if (section !== undefined) sections.push([section, new Map()])
    const [, key, value] = /^([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (key !== undefined && value) sections.at(-1)?.[1].set(key.toLowerCase(), value)
  }
  return sections
}
