import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash, createHmac, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EventFrames } from '../src/clouds/event-frames.ts'
import { signJwt } from '../src/clouds/jwt.ts'
import { mintBearer, signRequest } from '../src/clouds/sigv4.ts'
import { Secret } from '../src/config/config.ts'
import { takeAws } from '../src/upstream/clouds/aws.ts'
import { takeAzure } from '../src/upstream/clouds/azure.ts'
import { takeGoogle } from '../src/upstream/clouds/google.ts'
import type { SourceAround } from '../src/upstream/clouds/sources.ts'

// node bin/node.mjs scripts/cloud-oracles.ts [count] [part]
//
// Compares our code for clouds with independent implementations, over random inputs from a seed. Signatures and
// short-term keys of AWS must equal those of botocore and of AWS's key generator. Google-auth verifies and reads our
// tokens. Token requests must have the same fields as those of google-auth, msal and botocore. Signatures, tokens and
// token requests are also compared with the JavaScript libraries of AWS, Google and Microsoft. The codec of AWS's SDK
// writes frames, which botocore reads too. Needs Python with pip, and npm. Or ORACLES names a folder with the packages.

const count = Number(process.argv[2] ?? 10_000)
const part = process.argv[3]
const packages = [
  'botocore==1.44.8',
  'aws-bedrock-token-generator==1.1.0',
  'google-auth==2.63.0',
  'cryptography',
  'requests',
  'msal==1.39.0',
]
const folder = process.env['ORACLES'] ?? mkdtempSync(join(tmpdir(), 'triwire-oracle-'))

/** Whether a field only counts requests or describes the library. */
const isCounting = (field: string) => /^(?:client_info|x-client-.*|x-ms-lib-capability|client-request-id)$/.test(field)

/** For each JavaScript library, the sources of credentials for which it can make token requests. */
const judges = {
  'google-auth-library': ['service account', 'federation', 'federation impersonation'],
  '@azure/msal-node': ['client secret', 'workload identity', 'managed identity of the machine'],
  '@azure/identity': ['client secret', 'workload identity', 'managed identity of the machine'],
}
/** The environment variables of a library that gets its identity from a service. */
const ofService = { IDENTITY_ENDPOINT: 'http://127.0.0.1/msi/token', IDENTITY_HEADER: 'identity-word' }

/** The digest class that the signer of AWS's SDK requires. */
class Sha256 {
  readonly #hash
  constructor(secret?: string | Uint8Array) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret)
  }
  update(data: string | Uint8Array): void {
    this.#hash.update(data)
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }
}

const parts: Record<string, () => void | Promise<void>> = {
  signatures: compareSignatures,
  smithy: compareSmithy,
  frames: compareFrames,
  jwts: compareJwts,
  tokens: compareTokens,
}

try {
  if (process.env['ORACLES'] === undefined) {
    const { status } = spawnSync('pip', ['install', '--quiet', '--target', folder, ...packages], { stdio: 'inherit' })
    assert.equal(status, 0, 'pip has installed the oracles')
    const npm = [
      'install',
      '--silent',
      '--no-audit',
      '--no-fund',
      '--prefix',
      folder,
      '@smithy/eventstream-codec@4.5.2',
      '@smithy/signature-v4@5.7.5',
      'google-auth-library@11.3.4',
      '@azure/msal-node@7.2.3',
      '@azure/identity@4.14.1',
    ]
    assert.equal(spawnSync('npm', npm, { stdio: 'inherit' }).status, 0, 'npm has installed the oracles')
  }
  for (const [name, compare] of Object.entries(parts)) if (part === undefined || part === name) await compare()
} finally {
  if (process.env['ORACLES'] === undefined) rmSync(folder, { recursive: true, force: true })
}

type Signed = {
  kind: 'signature' | 'bearer'
  host: string
  path: string
  headers: Record<string, string>
  body: string
  id: string
  secret: string
  token: string | null
  region: string
  service: string
  ms: number
  expected: string
}

function compareSignatures(): void {
  const cases = run('signatures.py', [`${count}`]) as Signed[]
  for (const one of cases) {
    const { host, path, region, service, ms, expected } = one
    const credentials = { id: one.id, secret: one.secret, ...(one.token !== null && { token: one.token }) }
    if (one.kind === 'bearer') {
      assert.equal(mintBearer(credentials, region, ms), expected)
      continue
    }
    const request = { method: 'POST', host, path, headers: Object.entries(one.headers).flat() }
    const signed = signRequest(
      { ...request, body: Buffer.from(one.body, 'base64') },
      credentials,
      { region, service },
      ms,
    )
    assert.equal(new Map(signed).get('authorization'), expected, path)
  }
  console.log(`${cases.length} signatures and minted keys: no difference`)
}

/** Compares signatures of random requests with those of AWS's SDK for JavaScript. */
async function compareSmithy(): Promise<void> {
  const { SignatureV4 } = createRequire(join(folder, 'x'))('@smithy/signature-v4')
  const random = createRandom(13)
  const pick = <T>(of: readonly T[]) => of[random(of.length)]!
  for (let i = 0; i < count; i++) {
    const model = pick(['anthropic.claude-v1:0', 'arn:aws:bedrock:us-east-1:1:profile/ab', 'a b%é', "m!*'()", 'x_y~z'])
    const segment = encodeURIComponent(model).replaceAll('%3A', pick([':', '%3A']))
    const path = pick([`/model/${segment}/invoke`, '/anthropic/v1/messages', '/openai/v1/responses', '/'])
    const query = Object.fromEntries(
      Array.from({ length: random(3) }, (_, at) => [
        `${pick(['é', 'B', '-', 'a'])}${at}`,
        pick(['', 'x y', 'a/b', '=&']),
      ]),
    )
    const [region, service] = [pick(['us-east-1', 'eu-central-1']), pick(['bedrock', 'bedrock-mantle', 'sts'])]
    const host = `${service}.${region}.amazonaws.com`
    const headers = {
      'content-type': 'application/json',
      ...(random(2) === 0 && { 'x-amzn-bedrock-request-metadata': '  {"a":  "b c"} ' }),
    }
    const body = Buffer.alloc(random(2_000), `é${i}`)
    const [id, secret, token] = [`AKID${i}`, `secret/${random(1e6)}`, random(2) === 0 ? `token+${i}=` : undefined]
    const ms = 1_767_225_600_000 + 1_000 * random(10 ** 8)
    const signer = new SignatureV4({
      ...{ region, service, sha256: Sha256, applyChecksum: false },
      credentials: { accessKeyId: id, secretAccessKey: secret, ...(token !== undefined && { sessionToken: token }) },
    })
    const asked = {
      method: 'POST',
      protocol: 'https:',
      hostname: host,
      path,
      query,
      headers: { ...headers, host },
      body,
    }
    const { headers: expected } = await signer.sign(asked, { signingDate: new Date(ms) })
    const pairs = Object.entries(query).map(
      ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
    )
    const sent = pairs.length > 0 ? `${path}?${pairs.join('&')}` : path
    const credentials = { id, secret, ...(token !== undefined && { token }) }
    const request = { method: 'POST', host, path: sent, headers: Object.entries(headers).flat(), body }
    const signed = new Map(signRequest(request, credentials, { region, service }, ms))
    assert.equal(signed.get('authorization'), expected.authorization, sent)
  }
  console.log(`${count} signatures: no difference to the signer of AWS's SDK for JavaScript`)
}

/** Compares how frames of chunks and exceptions are read, in any pieces. Then flips single bits. */
async function compareFrames(): Promise<void> {
  const { EventStreamCodec } = createRequire(join(folder, 'x'))('@smithy/eventstream-codec')
  const codec = new EventStreamCodec(
    (bytes: Uint8Array) => Buffer.from(bytes).toString(),
    (text: string) => Buffer.from(text),
  )
  const random = createRandom(5)
  const frames: Buffer[] = []
  const expected: string[] = []
  for (let i = 0; i < 2 * count; i++) {
    const kind = random(20) === 0 ? 'exception' : 'event'
    const event = JSON.stringify({ type: 'content_block_delta', delta: { text: 'é✓'.repeat(random(60)) } })
    const payload = JSON.stringify(
      kind === 'event'
        ? { bytes: Buffer.from(event).toString('base64'), p: 'p'.repeat(random(10)) }
        : { message: event },
    )
    const headers = { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': kind }
    const typed = Object.entries(headers).map(([name, value]) => [name, { type: 'string', value }])
    frames.push(Buffer.from(codec.encode({ headers: Object.fromEntries(typed), body: Buffer.from(payload) })))
    expected.push(kind + payload)
  }
  const bytes = Buffer.concat(frames)
  const decoder = new EventFrames()
  const read: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random(1_500)
    for (const { headers, payload } of decoder.push(bytes.subarray(at, end)))
      read.push(`${headers.get(':message-type')}${payload}`)
    at = end
  }
  assert.deepEqual(read, expected)
  assert.deepEqual(run('frames.py', [], bytes), expected)
  for (let i = 0; i < count / 5; i++) {
    const frame = Buffer.from(frames[i]!)
    frame[random(frame.length)]! ^= 1 << random(8)
    let delivered = 0
    try {
      for (const _ of new EventFrames().push(frame)) delivered++
    } catch {}
    assert.equal(delivered, 0, 'a frame with a flipped bit')
  }
  console.log(`${frames.length} frames: no difference to the codec and to botocore; no flipped bit was delivered`)
}

/** Lets google-auth verify and read JSON Web Tokens with random claims. */
function compareJwts(): void {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const file = join(folder, 'public.pem')
  writeFileSync(file, publicKey.export({ type: 'spki', format: 'pem' }))
  const random = createRandom(11)
  const seconds = Math.floor(Date.now() / 1_000)
  const cases = Array.from({ length: count }, (_, i) => {
    const aud = `https://oauth2.googleapis.com/token/${random(1_000)}`
    const claims = {
      iss: `é${random(1_000)}@p.iam.gserviceaccount.com`,
      scope: `a b ${i}`,
      aud,
      iat: seconds - random(60),
    }
    return [{ kid: `${random(1_000_000)}` }, { ...claims, exp: seconds + 600 + random(3_000) }] as const
  })
  const tokens = cases.map(([header, claims]) => signJwt(header, claims, key))
  const expected = cases.map(([header, claims]) => [{ alg: 'RS256', typ: 'JWT', ...header }, claims])
  assert.deepEqual(run('jwts.py', [file], tokens.join('\n')), expected)
  assert.deepEqual(run('javascript.mjs', ['jwts', folder, file], tokens.join('\n')), expected)
  const forged = tokens
    .slice(0, 9)
    .map((token, at) => `${token.slice(0, 100 + at)}${token[100 + at] === 'A' ? 'B' : 'A'}${token.slice(101 + at)}`)
  for (const token of forged) assert.throws(() => run('javascript.mjs', ['jwts', folder, file], token))
  console.log(
    `${count} tokens: verified and read by google-auth, google-auth-library and jsonwebtoken, without a difference`,
  )
}

type TokenRequest = {
  name: string
  method: string
  path: string
  query: Record<string, string>
  fields: Record<string, unknown>
  headers: Record<string, string>
}

/** Compares the token requests of each source with those of the vendors' libraries for the same settings. */
async function compareTokens(): Promise<void> {
  const seen: TokenRequest[] = []
  let name = ''
  const server = createServer(async (request, response) => {
    const body = (await request.setEncoding('utf8').toArray()).join('')
    const { pathname: path, searchParams } = new URL(request.url!, 'http://host')
    const fields = body.startsWith('{') ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body))
    const headers = request.headers as Record<string, string>
    const about = path.endsWith('generateAccessToken') ? `${name} impersonation` : name
    seen.push({ name: about, method: request.method!, path, query: Object.fromEntries(searchParams), fields, headers })
    const end = '2099-01-01T00:00:00Z'
    const xml = `<AccessKeyId>a</AccessKeyId><SecretAccessKey>b</SecretAccessKey><SessionToken>c</SessionToken><Expiration>${end}</Expiration><Arn>d</Arn>`
    response.end(
      path === '/' ? xml : JSON.stringify({ access_token: 't', expires_in: 3_600, accessToken: 't', expireTime: end }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const written = (file: string, value: unknown) => {
    writeFileSync(join(folder, file), typeof value === 'string' ? value : JSON.stringify(value))
    return join(folder, file)
  }
  const key = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({ type: 'pkcs8', format: 'pem' })
  const account = { type: 'service_account', client_email: 'llm@p.iam', private_key: key, private_key_id: 'key-1' }
  const subject = written('subject', 'subject-word')
  const external = {
    ...{ type: 'external_account', audience: '//iam.googleapis.com/pool', credential_source: { file: subject } },
    ...{ subject_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
  }
  const taking = '/v1/projects/-/serviceAccounts/sa@p.iam:generateAccessToken'
  // The same settings for the libraries, with production addresses.
  written('service-account.json', { ...account, token_uri: 'https://oauth2.googleapis.com/token' })
  const theirs = {
    token_url: 'https://sts.googleapis.com/v1/token',
    service_account_impersonation_url: `https://iamcredentials.googleapis.com${taking}`,
  }
  written('external-account.json', { ...external, ...theirs })
  const expected = run('tokens.py', [folder]) as TokenRequest[]
  const aws = { kind: 'aws', region: 'eu-central-1', service: 'bedrock', sign: 'request' } as const
  const azure = { kind: 'azure', client: 'the-client', scope: 'https://ai.azure.com/.default' } as const
  const role = 'arn:aws:iam::123456789012:role/llm'
  const own = { token_url: `${url}/v1/token`, service_account_impersonation_url: url + taking }
  const keys = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 's' }
  const sources: Record<string, [take: (around: SourceAround) => Promise<unknown>, env?: Record<string, string>]> = {
    'service account': [
      (around) =>
        takeGoogle(
          { kind: 'google', credentialsFile: written('own.json', { ...account, token_uri: `${url}/token` }) },
          around,
        ),
    ],
    federation: [
      (around) => takeGoogle({ kind: 'google', credentialsFile: written('own.json', { ...external, ...own }) }, around),
    ],
    'client secret': [
      (around) => takeAzure({ ...azure, tenant: 'the-tenant', secret: new Secret('the-secret') }, around),
    ],
    'workload identity': [
      (around) => takeAzure({ ...azure, tenant: 'the-tenant' }, around),
      { AZURE_FEDERATED_TOKEN_FILE: written('federated', 'federated-word') },
    ],
    'managed identity of the machine': [(around) => takeAzure(azure, around)],
    'managed identity of the service': [
      (around) => takeAzure(azure, around),
      { IDENTITY_ENDPOINT: `${url}/msi/token`, IDENTITY_HEADER: 'identity-word' },
    ],
    role: [(around) => takeAws({ ...aws, role, externalId: 'ext' }, around), keys],
    'web identity': [
      (around) => takeAws(aws, around),
      { AWS_WEB_IDENTITY_TOKEN_FILE: written('web', 'web-word-1'), AWS_ROLE_ARN: role },
    ],
  }
  for (const [source, [take, env = {}]] of Object.entries(sources)) {
    name = source
    const places = { AZURE_AUTHORITY_HOST: url, AZURE_POD_IDENTITY_AUTHORITY_HOST: url, AWS_ENDPOINT_URL_STS: url }
    const { signal } = new AbortController()
    await take({
      env: { ...places, HOME: folder, ...env },
      nowMs: Date.now,
      noteDate() {},
      routeTo: () => ({}),
      signal,
    })
  }
  server.close()
  const plain = ({ name, method, path, query, fields }: TokenRequest) => {
    const kept = (of: Record<string, unknown>) => Object.entries(of).filter(([field]) => !isCounting(field))
    const claims = kept(fields).map(([field, value]) =>
      field === 'assertion' ? [field, claimsOf(`${value}`)] : [field, value],
    )
    return { name, method, path, query: Object.fromEntries(kept(query)), fields: Object.fromEntries(claims) }
  }
  assert.deepEqual(seen.map(plain), expected.map(plain))
  for (const [index, { headers }] of seen.entries())
    for (const header of ['metadata', 'x-identity-header', 'authorization'])
      if (headers[header] !== undefined && seen[index]!.name !== 'role')
        assert.equal(headers[header], expected[index]!.headers[header], `${seen[index]!.name}: ${header}`)
  console.log(`${seen.length} token requests: the fields of google-auth, msal and botocore`)
  for (const [judge, known] of Object.entries(judges)) {
    const theirs = run('javascript.mjs', [judge, folder]) as TokenRequest[]
    if (judge.startsWith('@azure'))
      theirs.push(...(run('javascript.mjs', [judge, folder], '', ofService) as TokenRequest[]))
    const names = judge.startsWith('@azure') ? [...known, 'managed identity of the service'] : known
    assert.deepEqual(
      names.map((name) => asJavaScript(plain(seen.find((one) => one.name === name)!))),
      theirs.map((one) => asJavaScript(plain(one))),
    )
    console.log(`${theirs.length} token requests: the fields of ${judge}`)
  }
}

/**
 * Removes what Google's JavaScript library does not send: members that are null, and the head of a token except its
 * algorithm. The scope of the exchange before an impersonation is removed too. The JavaScript library asks for the wide
 * scope there. We ask for the scope of IAM, as Google's Python library does.
 */
function asJavaScript({ fields, ...request }: Pick<TokenRequest, 'name' | 'fields'>) {
  const isExchange = request.name === 'federation'
  const kept = Object.entries(fields).filter(([name, value]) => value !== null && !(isExchange && name === 'scope'))
  const short = kept.map(([field, value]) => [field, field === 'assertion' ? (value as unknown[]).slice(1) : value])
  return { ...request, fields: Object.fromEntries(short) }
}

/** Returns head and claims of a token, with its lifetime instead of times, and without the audience's host. */
function claimsOf(token: string): unknown[] {
  const [head, claims] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString())
  const { iat, exp, aud, ...rest } = JSON.parse(claims!)
  return [JSON.parse(head!), rest, exp - iat, new URL(aud).pathname]
}

/** Creates a generator of integers below a bound from a seed. */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >>> 8) % below
  }
}

/** Runs a program of `scripts/clouds`. @returns the values on its lines */
function run(
  program: string,
  args: readonly string[],
  input: string | Buffer = '',
  env: Record<string, string> = {},
): unknown[] {
  const options = { input, env: { ...process.env, ...env, PYTHONPATH: folder }, maxBuffer: 2 ** 30 }
  const { stdout, stderr, status } = spawnSync(
    program.endsWith('.py') ? 'python3' : process.execPath,
    [join(import.meta.dirname, 'clouds', program), ...args],
    options,
  )
  assert.equal(status, 0, `${stderr}`)
  return `${stdout}`
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}
