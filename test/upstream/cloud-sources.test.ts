import assert from 'node:assert/strict'
import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { type CloudAccount, Secret, type UpstreamAccount } from '../../src/config/config.ts'
import { createKeyring } from '../../src/upstream/keyring.ts'
import { atEnd } from '../support/at-end.ts'
import { createAuthority } from '../support/certificates.ts'
import {
  canary,
  roleArn,
  type StubCloud,
  startCloud,
  writeExternalAccount,
  writeServiceAccount,
} from '../support/clouds.ts'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { testFolder } from '../support/folder.ts'
import { startTlsServer } from '../support/tls-server.ts'
import { upstreamAt } from '../support/upstream.ts'
import { until } from '../support/waiting.ts'

/* Every source of credentials, from files and stubs (clouds 1.4, 3.3, 4): given, renewed, refused, with another clock, and unlogged. */

const aws: CloudAccount = { kind: 'aws', region: 'eu-central-1', service: 'bedrock', sign: 'request' }
const azure: CloudAccount = { kind: 'azure', scope: 'https://ai.azure.com/.default' }
const azureApp: CloudAccount = { ...azure, tenant: 'the-tenant', client: 'the-client' }

type Setting = { folder: string; cloud: StubCloud; file(name: string, text: string): string }
type Source = {
  name: string
  /** The settings of the account, and the environment. */
  set(setting: Setting): { account: CloudAccount; env?: Record<string, string> }
  source: string
  identity: string
  /** Its credentials have no end. */
  isEndless?: true
  /** No stub is asked. */
  isLocal?: true
}

const keys = `aws_access_key_id = AKIAFILE\naws_secret_access_key = ${canary}-file\n`
const federation = (cloud: StubCloud, source: object, more = {}) => ({
  credential_source: source,
  ...more,
  token_url: `${cloud.url}/google/exchange`,
})

const sources: Source[] = [
  {
    name: 'variables of AWS',
    set: () => ({
      account: aws,
      env: { AWS_ACCESS_KEY_ID: 'AKIAENV', AWS_SECRET_ACCESS_KEY: `${canary}-file`, AWS_SESSION_TOKEN: `${canary}-t` },
    }),
    ...{ source: 'environment', identity: 'AKIAENV', isEndless: true, isLocal: true },
  },
  {
    name: 'shared files, the profile of the settings, in spite of variables',
    set: ({ file }) => ({
      account: { ...aws, profile: 'llm' },
      env: {
        AWS_SHARED_CREDENTIALS_FILE: file('credentials', `# none\n[default]\naws_access_key_id=x\n[ llm ]\n${keys}`),
        AWS_PROFILE: 'other',
        AWS_ACCESS_KEY_ID: 'AKIAENV',
        AWS_SECRET_ACCESS_KEY: 'x',
      },
    }),
    ...{ source: 'profile llm', identity: 'AKIAFILE', isEndless: true, isLocal: true },
  },
  {
    name: 'shared files, the profile of AWS_PROFILE',
    set: ({ file }) => ({
      account: aws,
      env: {
        AWS_SHARED_CREDENTIALS_FILE: file('credentials', `[llm]\n${keys}[default]\naws_access_key_id=x\n`),
        AWS_PROFILE: 'llm',
        AWS_WEB_IDENTITY_TOKEN_FILE: 'none',
      },
    }),
    ...{ source: 'profile llm', identity: 'AKIAFILE', isEndless: true, isLocal: true },
  },
  {
    name: 'shared files in the home folder, the default profile',
    set: ({ file, folder }) => {
      file('.aws/credentials', `[default]\r\n${keys.replaceAll('\n', '\r\n')}`)
      return { account: aws, env: { HOME: folder } }
    },
    ...{ source: 'profile default', identity: 'AKIAFILE', isEndless: true, isLocal: true },
  },
  {
    name: 'role_arn over source_profile, in both files',
    set: ({ file }) => ({
      account: { ...aws, profile: 'llm' },
      env: {
        AWS_CONFIG_FILE: file(
          'config',
          `[profile llm]\nrole_arn = ${roleArn}\nsource_profile = base\nexternal_id = e\nnested =\n  role_arn = x\n`,
        ),
        AWS_SHARED_CREDENTIALS_FILE: file('credentials', `[base]\n${keys}`),
      },
    }),
    ...{ source: 'role over profile base', identity: 'arn:aws:sts::123456789012:assumed-role/llm/triwire' },
  },
  {
    name: 'role_arn over a source_profile that has keys and a role of its own',
    set: ({ file }) => ({
      account: { ...aws, profile: 'llm' },
      env: {
        AWS_CONFIG_FILE: file(
          'config',
          `[profile llm]\nrole_arn = ${roleArn}\nsource_profile = base\n[profile base]\nrole_arn = r\nsource_profile = base\n`,
        ),
        AWS_SHARED_CREDENTIALS_FILE: file('credentials', `[base]\n${keys}`),
      },
    }),
    ...{ source: 'role over profile base', identity: 'arn:aws:sts::123456789012:assumed-role/llm/triwire' },
  },
  {
    name: 'role_arn over the profile itself',
    set: ({ file }) => ({
      account: { ...aws, profile: 'llm' },
      env: {
        AWS_SHARED_CREDENTIALS_FILE: file('credentials', `[llm]\nrole_arn = ${roleArn}\nsource_profile = llm\n${keys}`),
      },
    }),
    ...{ source: 'role over profile llm', identity: 'arn:aws:sts::123456789012:assumed-role/llm/triwire' },
  },
  {
    name: 'role_arn over credential_source',
    set: ({ file }) => ({
      account: { ...aws, profile: 'llm' },
      env: {
        AWS_CONFIG_FILE: file('config', `[profile llm]\nrole_arn = ${roleArn}\ncredential_source = Environment\n`),
        AWS_ACCESS_KEY_ID: 'AKIAENV',
        AWS_SECRET_ACCESS_KEY: `${canary}-file`,
      },
    }),
    ...{ source: 'role over environment', identity: 'arn:aws:sts::123456789012:assumed-role/llm/triwire' },
  },
  {
    name: 'credential_process, with words and a profile in quotes',
    set: ({ file, cloud }) => {
      const said = { Version: 1, AccessKeyId: 'ASIAPROC', SecretAccessKey: `${canary}-p`, SessionToken: `${canary}-pt` }
      const end = new Date(cloud.nowMs() + 3_600_000).toISOString()
      const program = file(
        'a program',
        `#!/bin/sh\n[ "$1" = "two words" ] && echo '${JSON.stringify({ ...said, Expiration: end })}'\n`,
      )
      chmodSync(program, 0o755)
      return {
        account: { ...aws, profile: 'my llm' },
        env: { AWS_CONFIG_FILE: file('config', `[profile "my llm"]\ncredential_process = "${program}" 'two words'\n`) },
      }
    },
    ...{ source: 'profile my llm', identity: 'credential_process', isLocal: true },
  },
  {
    name: 'web identity',
    set: ({ file }) => ({
      account: aws,
      env: { AWS_WEB_IDENTITY_TOKEN_FILE: file('token', 'web-word-1\n'), AWS_ROLE_ARN: roleArn },
    }),
    ...{ source: 'web identity', identity: 'arn:aws:sts::123456789012:assumed-role/llm/triwire' },
  },
  {
    name: 'container, with the word of a file',
    set: ({ file, cloud }) => ({
      account: aws,
      env: {
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${cloud.url}/container`,
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file('word', 'container-word\n'),
      },
    }),
    ...{ source: 'container', identity: roleArn },
  },
  {
    name: 'instance metadata, version 2',
    set: ({ cloud, folder, file }) => {
      file('.aws/config', '[default]\nregion = eu-central-1\naws_account_id = 123456789012\n')
      return { account: aws, env: { AWS_EC2_METADATA_SERVICE_ENDPOINT: `${cloud.url}/`, HOME: folder } }
    },
    ...{ source: 'instance metadata', identity: 'the-role' },
  },
  {
    name: 'a role of the settings over variables',
    set: () => ({
      account: { ...aws, role: roleArn, externalId: 'e' },
      env: { AWS_ACCESS_KEY_ID: 'AKIAENV', AWS_SECRET_ACCESS_KEY: `${canary}-file` },
    }),
    ...{ source: 'role over environment', identity: 'arn:aws:sts::123456789012:assumed-role/llm/triwire' },
  },
  {
    name: 'service account of the settings',
    set: ({ cloud, folder }) => ({ account: { kind: 'google', credentialsFile: writeServiceAccount(folder, cloud) } }),
    ...{ source: 'service account', identity: 'llm@p.iam.gserviceaccount.com' },
  },
  {
    name: 'service account of GOOGLE_APPLICATION_CREDENTIALS',
    set: ({ cloud, folder }) => ({
      account: { kind: 'google' },
      env: { GOOGLE_APPLICATION_CREDENTIALS: writeServiceAccount(folder, cloud) },
    }),
    ...{ source: 'service account', identity: 'llm@p.iam.gserviceaccount.com' },
  },
  {
    name: 'metadata server of Google',
    set: ({ cloud }) => ({ account: { kind: 'google' }, env: { GCE_METADATA_HOST: cloud.host } }),
    ...{ source: 'metadata server', identity: 'vm@p.iam' },
  },
  {
    name: 'federation by a file',
    set: ({ cloud, folder, file }) => {
      const source = federation(cloud, { file: file('subject', 'subject-word\n') })
      return { account: { kind: 'google', credentialsFile: writeExternalAccount(folder, cloud, source) } }
    },
    ...{ source: 'workload identity federation', identity: '//iam.googleapis.com/pool' },
  },
  {
    name: 'federation by an address, as a service account',
    set: ({ cloud, folder }) => {
      const format = { type: 'json', subject_token_field_name: 'the_token' }
      const source = { url: `${cloud.url}/subject`, headers: { 'x-word': 'on' }, format }
      const impersonation = `${cloud.url}/google/serviceAccounts/sa@p.iam:generateAccessToken`
      const more = federation(cloud, source, { service_account_impersonation_url: impersonation })
      return { account: { kind: 'google', credentialsFile: writeExternalAccount(folder, cloud, more) } }
    },
    ...{ source: 'workload identity federation', identity: 'sa@p.iam' },
  },
  {
    name: 'federation by a program',
    set: ({ cloud, folder, file }) => {
      const said = '{"version":1,"success":true,"id_token":"subject-word"}'
      const program = file(
        'program',
        `test "$1 $GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE" = "a b //iam.googleapis.com/pool" && echo '${said}'`,
      )
      const source = federation(cloud, { executable: { command: `sh "${program}" "a b"`, timeout_millis: 5000 } })
      return {
        account: { kind: 'google', credentialsFile: writeExternalAccount(folder, cloud, source) },
        env: { GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES: '1' },
      }
    },
    ...{ source: 'workload identity federation', identity: '//iam.googleapis.com/pool' },
  },
  {
    name: 'federation by a signed question to AWS',
    set: ({ cloud, folder }) => ({
      account: {
        kind: 'google',
        credentialsFile: writeExternalAccount(folder, cloud, federation(cloud, { environment_id: 'aws1' })),
      },
      env: { AWS_REGION: 'eu-central-1', AWS_ACCESS_KEY_ID: 'AKIAENV', AWS_SECRET_ACCESS_KEY: `${canary}-file` },
    }),
    ...{ source: 'workload identity federation', identity: '//iam.googleapis.com/pool' },
  },
  {
    name: 'client secret of the settings',
    set: ({ cloud }) => ({
      account: { ...azureApp, secret: new Secret(`${canary}-client`) },
      env: { AZURE_AUTHORITY_HOST: `${cloud.url}/` },
    }),
    ...{ source: 'client secret', identity: 'client the-client' },
  },
  {
    name: 'client secret of a file',
    set: ({ cloud, file }) => ({
      account: { ...azureApp, secretFile: file('secret', `${canary}-client\n`) },
      env: { AZURE_AUTHORITY_HOST: cloud.url },
    }),
    ...{ source: 'client secret', identity: 'client the-client' },
  },
  {
    name: 'client secret of variables',
    set: ({ cloud }) => ({
      account: azure,
      env: {
        ...{ AZURE_AUTHORITY_HOST: cloud.url, AZURE_TENANT_ID: 'the-tenant', AZURE_CLIENT_ID: 'the-client' },
        AZURE_CLIENT_SECRET: `${canary}-client`,
      },
    }),
    ...{ source: 'client secret', identity: 'client the-client' },
  },
  {
    name: 'workload identity of Entra',
    set: ({ cloud, file }) => ({
      account: azureApp,
      env: { AZURE_AUTHORITY_HOST: cloud.url, AZURE_FEDERATED_TOKEN_FILE: file('token', 'federated-word\n') },
    }),
    ...{ source: 'workload identity', identity: 'client the-client' },
  },
  {
    name: 'managed identity of a service',
    set: ({ cloud }) => ({
      account: azure,
      env: { IDENTITY_ENDPOINT: `${cloud.url}/msi/token`, IDENTITY_HEADER: 'identity-word' },
    }),
    ...{ source: 'managed identity', identity: 'the identity of the machine' },
  },
  {
    name: 'managed identity of a machine',
    set: ({ cloud }) => ({
      account: { ...azure, client: 'the-client' },
      env: { AZURE_POD_IDENTITY_AUTHORITY_HOST: cloud.url },
    }),
    ...{ source: 'managed identity', identity: 'client the-client' },
  },
  {
    name: 'managed identity of a machine, the one of AZURE_CLIENT_ID',
    set: ({ cloud }) => ({
      account: azure,
      env: { AZURE_POD_IDENTITY_AUTHORITY_HOST: cloud.url, AZURE_CLIENT_ID: 'the-client' },
    }),
    ...{ source: 'managed identity', identity: 'client the-client' },
  },
]

async function start(set: Source['set'], more: Parameters<typeof upstreamAt>[1] = {}) {
  const startMs = Date.UTC(2026, 10, 27, 12)
  let passedMs = 0
  const nowMs = () => startMs + passedMs
  const cloud = await startCloud(nowMs)
  const folder = testFolder('clouds')
  atEnd(() => rmSync(folder, { recursive: true }))
  const file = (name: string, text: string) => {
    const path = join(folder, name)
    process.getBuiltinModule('node:fs').mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, text)
    return path
  }
  const { account, env = {} } = set({ folder, cloud, file })
  const log: string[] = []
  const report = (level: string, event: string, fields: object) =>
    void log.push(`${level} ${event} ${JSON.stringify(fields)}`)
  const keyring = createKeyring(() => passedMs, report, nowMs, {
    HOME: folder,
    AWS_ENDPOINT_URL_STS: cloud.url,
    AWS_EC2_METADATA_DISABLED: env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] ? 'false' : 'true',
    ...env,
  })
  atEnd(keyring.close)
  const own: UpstreamAccount = { name: 'a', key: new Secret(''), renewal: { cloud: account }, isEnabled: true }
  const upstreams = [upstreamAt('https://far', { name: 'far', accounts: [own], ...more })]
  keyring.adopt(upstreams)
  const key = keyring.keyOf(own)
  return {
    ...{ cloud, key, log, keyring, file, folder, account, own },
    begin: () => keyring.prepare(upstreams),
    pass(ms: number) {
      passedMs += ms
      keyring.tick()
    },
    /** Waits until no renewal is under way. */
    settled: () => until(() => !key.credential!.isRenewing, 'the renewal is over'),
  }
}

for (const { name, set, source, identity, isEndless, isLocal } of sources) {
  test(`clouds ${name}: a credential is used, renewed once before its end, kept while renewal fails, and dropped at its end`, async () => {
    const { cloud, key, log, begin, pass, settled } = await start(set)
    await begin()
    assert.deepEqual([cloud.mistakes, log], [[], []])
    const { state } = key.credential!
    assert.deepEqual([state.source, state.identity], [source, identity])
    assert.equal(state.leftMs === undefined, isEndless === true)
    const first = key.value
    assert.ok(first)
    assert.ok(key.known.includes(first))
    if (isLocal) {
      assert.equal(cloud.upstream.requests.length, 0)
      return
    }
    // 80 % of an hour.
    const asked = () => cloud.given
    const before = asked()
    pass(2_879_000)
    assert.equal(key.credential!.isRenewing, false)
    cloud.refuses = 500
    pass(1_000)
    assert.equal(key.credential!.isRenewing, true)
    for (let i = 0; i < 20; i++) pass(0)
    await settled()
    assert.deepEqual([key.value, asked()], [first, before])
    assert.equal(log.length, 1)
    assert.match(log[0]!, /^error key_failed {"account":"far\/a","why":".*500.*","in_use":true}$/)
    cloud.refuses = undefined
    pass(5_000)
    await settled()
    const second = key.value
    assert.notEqual(second, undefined)
    assert.notEqual(second, first)
    assert.deepEqual(log.slice(1), ['info key_renewed {"account":"far/a"}'])
    assert.ok(key.known.includes(first), 'answers under way may quote the one before')
    cloud.refuses = 403
    pass(2_880_000)
    await settled()
    assert.equal(key.value, second)
    pass(719_000)
    await settled()
    assert.equal(key.value, second)
    const said = log.length
    pass(1_000)
    await settled()
    assert.equal(key.value, undefined)
    pass(60_000)
    await settled()
    pass(60_000)
    await settled()
    assert.deepEqual(
      log.slice(said).map((line) => /key_failed .*403.*"in_use":(\w+)/.exec(line)?.[1]),
      ['false'],
      'that the account has no key any more is logged once',
    )
    assert.deepEqual(cloud.mistakes, [])
    assert.doesNotMatch(log.join(), new RegExp(canary))
  })
}

test('clouds a life of minutes is renewed after half of it, a long one at least five minutes before its end', async () => {
  const set = sources.find(({ name }) => name === 'client secret of variables')!.set
  // [life, renewed after], in s
  for (const [life, after] of [
    [60, 30],
    [500, 250],
    [900, 600],
    [1_200, 900],
    [1_500, 1_200],
    [3_600, 2_880],
    [43_200, 34_560],
  ]) {
    const { cloud, key, begin, pass } = await start((setting) => {
      setting.cloud.lifeSeconds = life!
      return set(setting)
    })
    await begin()
    pass(after! * 1_000 - 1)
    assert.equal(key.credential!.isRenewing, false, `${life} s`)
    pass(1)
    assert.equal(key.credential!.isRenewing, true, `${life} s`)
    assert.equal(cloud.given, 1)
  }
})

test('clouds a clock that differs from the cloud’s affects neither the life of a credential nor its signatures', async () => {
  for (const { name, set } of sources.filter(({ isLocal }) => !isLocal))
    for (const aheadSeconds of [-86_400, -600, 600, 86_400]) {
      const { key, begin, log } = await start((setting) => {
        setting.cloud.aheadSeconds = aheadSeconds
        return set(setting)
      })
      await begin()
      if (!key.value) {
        // Questions that are signed with the wrong time are put again at once with the right one, and at most once.
        assert.fail(`${name}, ${aheadSeconds} s: ${log}`)
      }
      const { leftMs, aheadMs } = key.credential!.state
      assert.ok(Math.abs(leftMs! - 3_600_000) <= 2_000, `${name}: ${leftMs}`)
      assert.ok(Math.abs(aheadMs! - aheadSeconds * 1_000) <= 2_000, name)
      assert.match(log.join(), /info clock_skew/)
      assert.doesNotMatch(log.join(), new RegExp(`${canary}|key_failed`))
    }
})

test('clouds token files are read again for each renewal, and a missing one is an error that names it', async () => {
  const { set } = sources.find(({ name }) => name === 'web identity')!
  const { key, begin, pass, settled, file, folder, cloud, log } = await start(set)
  await begin()
  file('token', 'web-word-2')
  pass(2_880_000)
  await settled()
  assert.match(cloud.upstream.requests.at(-1)!.body.toString(), /web-word-2/)
  assert.equal(key.value, 'ASIA2')
  rmSync(join(folder, 'token'))
  pass(2_880_000)
  await settled()
  assert.match(log.at(-1)!, /key_failed .*the web identity token .*token cannot be read \(ENOENT\)/)
  assert.equal(key.value, 'ASIA2')
})

const wrong: [about: string, set: Source['set'], why: RegExp][] = [
  ['no source', () => ({ account: aws }), /there are no credentials of AWS/],
  ['half of the variables', () => ({ account: aws, env: { AWS_ACCESS_KEY_ID: 'a' } }), /must both be set/],
  [
    'a profile that is in no file',
    ({ file }) => ({ account: { ...aws, profile: 'x' }, env: { AWS_CONFIG_FILE: file('c', '[default]\n') } }),
    /the profile x is in neither/,
  ],
  ['no file', () => ({ account: { ...aws, profile: 'x' } }), /the shared file .*credentials cannot be read \(ENOENT\)/],
  [
    'a profile for people',
    ({ file }) => ({
      account: { ...aws, profile: 'x' },
      env: { AWS_CONFIG_FILE: file('c', '[profile x]\nsso_session = s\n') },
    }),
    /signs in interactively: .*credential_process/,
  ],
  [
    'a default profile of aws login',
    ({ file }) => ({
      account: aws,
      env: { AWS_CONFIG_FILE: file('c', '[default]\nlogin_session = arn:aws:iam::123456789012:user/x\n') },
    }),
    /the profile default signs in interactively: .*credential_process/,
  ],
  [
    'a profile with a code',
    ({ file }) => ({
      account: { ...aws, profile: 'x' },
      env: { AWS_CONFIG_FILE: file('c', `[profile x]\nrole_arn = ${roleArn}\nmfa_serial = s\n`) },
    }),
    /mfa_serial/,
  ],
  [
    'a circle of profiles',
    ({ file }) => ({
      account: { ...aws, profile: 'x' },
      env: {
        AWS_CONFIG_FILE: file(
          'c',
          `[profile x]\nrole_arn = r\nsource_profile = y\n[profile y]\nrole_arn = r\nsource_profile = x\n`,
        ),
      },
    }),
    /is its own source/,
  ],
  [
    'a profile without keys that names itself',
    ({ file }) => ({
      account: { ...aws, profile: 'x' },
      env: { AWS_CONFIG_FILE: file('c', '[profile x]\nrole_arn = r\nsource_profile = x\n') },
    }),
    /the profile x is its own source/,
  ],
  [
    'a role that is forbidden',
    ({ cloud }) => ({
      account: { ...aws, role: roleArn, externalId: 'wrong' },
      env: { AWS_ACCESS_KEY_ID: 'AKIAENV', AWS_SECRET_ACCESS_KEY: `${canary}-file`, AWS_ENDPOINT_URL_STS: cloud.url },
    }),
    /answers 403 invalid/,
  ],
  [
    'a container elsewhere',
    () => ({ account: aws, env: { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://192.0.2.1/x' } }),
    /192\.0\.2\.1 is not asked: it must be https:\/\/, or http:\/\/ on loopback or a metadata address/,
  ],
  [
    'an STS without TLS',
    () => ({
      account: { ...aws, role: roleArn },
      env: { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_ENDPOINT_URL_STS: 'http://sts.example' },
    }),
    /sts\.example is not asked/,
  ],
  [
    'a metadata service elsewhere',
    () => ({ account: aws, env: { AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://192.0.2.1' } }),
    /192\.0\.2\.1 is not asked.*; in a container the hop limit/,
  ],
  [
    'a metadata server elsewhere',
    () => ({ account: { kind: 'google' }, env: { GCE_METADATA_HOST: 'metadata.example' } }),
    /metadata\.example is not asked/,
  ],
  [
    'what is not the metadata server',
    ({ cloud }) => ({
      account: { kind: 'google' },
      env: {
        GCE_METADATA_HOST: `${cloud.host}/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fai.azure.com&x=`,
      },
    }),
    /answers 400/,
  ],
  [
    'another kind of file',
    ({ file }) => ({ account: { kind: 'google', credentialsFile: file('g', '{"type":"authorized_user"}') } }),
    /has the type authorized_user: known are service_account and external_account/,
  ],
  [
    'a file without a member',
    ({ file }) => ({ account: { kind: 'google', credentialsFile: file('g', '{"type":"service_account"}') } }),
    /has no client_email/,
  ],
  [
    'a key that is none',
    ({ cloud, folder }) => ({
      account: { kind: 'google', credentialsFile: writeServiceAccount(folder, cloud, { private_key: `${canary}` }) },
    }),
    /private_key that cannot be read/,
  ],
  [
    'a token address without TLS',
    ({ cloud, folder }) => ({
      account: {
        kind: 'google',
        credentialsFile: writeServiceAccount(folder, cloud, { token_uri: 'http://oauth.example/t' }),
      },
    }),
    /oauth\.example is not asked/,
  ],
  [
    'a program of a federation, without consent',
    ({ cloud, folder }) => ({
      account: {
        kind: 'google',
        credentialsFile: writeExternalAccount(folder, cloud, { credential_source: { executable: { command: 'sh' } } }),
      },
    }),
    /needs GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1/,
  ],
  [
    'a program of a federation that reports no token',
    ({ cloud, folder }) => ({
      account: {
        kind: 'google',
        credentialsFile: writeExternalAccount(folder, cloud, {
          credential_source: { executable: { command: `echo '{"success":false,"code":"401"}'` } },
        }),
      },
      env: { GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES: '1' },
    }),
    /the output of the program of the external account has no id_token/,
  ],
  ['no tenant', () => ({ account: { ...azure, secret: new Secret('s') } }), /`tenant` and `client` are needed/],
  [
    'an authority without TLS',
    () => ({
      account: { ...azureApp, secret: new Secret(canary) },
      env: { AZURE_AUTHORITY_HOST: 'http://login.example' },
    }),
    /login\.example is not asked/,
  ],
  [
    'a wrong secret',
    ({ cloud }) => ({
      account: { ...azureApp, secret: new Secret('canary-wrong') },
      env: { AZURE_AUTHORITY_HOST: cloud.url },
    }),
    /answers 401 invalid/,
  ],
]

test('clouds Y27 sources that cannot give a credential report why, without secrets, and connect to no forbidden host', async () => {
  for (const [about, set, why] of wrong) {
    const { key, begin, log } = await start(set)
    await begin()
    assert.equal(key.value, undefined, about)
    assert.equal(log.length, 1, `${about}: ${log}`)
    assert.match(log[0]!, why, about)
    assert.doesNotMatch(log[0]!, new RegExp(canary), about)
  }
})

test('clouds the text of an answer that is not JSON, or has an unexpected form, is never logged', async () => {
  for (const { name, set, isLocal } of sources) {
    if (isLocal) continue
    for (const body of [
      `${canary}`,
      `{"access_token":${canary}`,
      `"${canary}"`,
      'null',
      `{"expires_in":"${canary}"}`,
    ]) {
      const { key, begin, log } = await start((setting) => {
        const head = `HTTP/1.1 200 OK\r\nmetadata-flavor: Google\r\ncontent-length: ${body.length}\r\n\r\n`
        setting.cloud.upstream.play((socket) => void socket.write(head + body))
        return set(setting)
      })
      await begin()
      assert.equal(key.value, undefined, `${name}: ${body}`)
      assert.match(log.join(), /key_failed/, name)
      assert.doesNotMatch(log.join(), new RegExp(canary.slice(0, 6)), `${name}: ${body}`)
    }
  }
})

test('clouds a request to a silent source is cancelled and repeated', async () => {
  const { set } = sources.find(({ name }) => name === 'client secret of variables')!
  const { cloud, key, begin, pass, log } = await start((setting) => {
    setting.cloud.isSilent = true
    return set(setting)
  })
  const begun = begin()
  await cloud.upstream.untilHeard()
  pass(30_000)
  await begun
  assert.match(log[0]!, /key_failed .*it takes too long/)
  cloud.isSilent = false
  pass(5_000)
  await until(() => key.value !== undefined)
})

test('clouds two accounts of one source share a key, different secrets have different keys, and a disabled account asks no source', async () => {
  const { set } = sources.find(({ name }) => name === 'client secret of the settings')!
  const { cloud, account, own, keyring, key } = await start(set)
  const other: UpstreamAccount = {
    ...own,
    name: 'b',
    renewal: { cloud: { ...account, secret: new Secret('canary-other') } as CloudAccount },
  }
  const same: UpstreamAccount = { ...own, name: 'c' }
  const off: UpstreamAccount = {
    ...other,
    name: 'd',
    renewal: { cloud: { ...account, client: 'off' } as CloudAccount },
    isEnabled: false,
  }
  const upstreams = [upstreamAt('https://far', { name: 'far', accounts: [own, other, same, off] })]
  await keyring.prepare(upstreams)
  assert.equal(keyring.keyOf(same), key)
  assert.notEqual(keyring.keyOf(other), key)
  assert.deepEqual([cloud.upstream.requests.length, keyring.keyOf(off).value], [2, undefined])
})

test('clouds endpoints are asked through the proxy of the upstream or the environment; link-local addresses never are', async () => {
  const { set } = sources.find(({ name }) => name === 'client secret of variables')!
  const proxy = await startEgressProxy()
  proxy.refuse(407)
  const far = { AZURE_AUTHORITY_HOST: 'https://login.invalid' }
  const through = { proxy: { url: new Secret(proxy.url), source: 'upstreams.far.proxy' } }
  for (const [env, upstream] of [
    [{ HTTPS_PROXY: proxy.url }, {}],
    [{}, through],
  ] as const) {
    const before = proxy.asked.length
    const { begin, key, log } = await start((setting) => {
      const { account, env: own } = set(setting)
      return { account, env: { ...own, ...far, ...env } }
    }, upstream)
    await begin()
    assert.equal(key.value, undefined)
    assert.match(log[0]!, /login\.invalid cannot be reached \(the proxy answers 407\)/)
    assert.equal(proxy.asked.length, before + 1)
    assert.match(JSON.stringify(proxy.asked.at(-1)), /login\.invalid/)
  }
  // A subject token or a container's credential may come from any host, which is far unless it is a metadata service.
  for (const set of [
    ({ folder, cloud }) => ({
      account: {
        kind: 'google',
        credentialsFile: writeExternalAccount(folder, cloud, { credential_source: { url: 'https://login.invalid/' } }),
      },
    }),
    () => ({ account: aws, env: { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'https://login.invalid/' } }),
  ] satisfies Source['set'][]) {
    const { begin, log } = await start(set, through)
    await begin()
    assert.match(log[0]!, /login\.invalid cannot be reached \(the proxy answers 407\)/)
  }
  const near = await start(sources.find(({ name }) => name === 'metadata server of Google')!.set, through)
  const before = proxy.asked.length
  await near.begin()
  assert.ok(near.key.value)
  assert.equal(proxy.asked.length, before)
})

test('clouds 1.4 STS is asked in the domain of its region', async () => {
  const proxy = await startEgressProxy()
  proxy.refuse(407)
  const env = { AWS_ENDPOINT_URL_STS: '', AWS_ACCESS_KEY_ID: 'AKIAENV', AWS_SECRET_ACCESS_KEY: `${canary}-file` }
  for (const [region, domain] of [
    ['eu-central-1', 'amazonaws.com'],
    ['cn-north-1', 'amazonaws.com.cn'],
    ['eusc-de-east-1', 'amazonaws.eu'],
  ] as const) {
    const account = { ...aws, region, role: roleArn }
    const { begin } = await start(() => ({ account, env }), {
      proxy: { url: new Secret(proxy.url), source: 'upstreams.far.proxy' },
    })
    await begin()
    assert.equal(proxy.asked.at(-1), `CONNECT sts.${region}.${domain}:443`)
  }
})

test('clouds U14 a reload that changes an upstream’s proxy changes it for the next renewal; a rejected reload does not', async () => {
  const { set } = sources.find(({ name }) => name === 'client secret of variables')!
  const [old, anew] = [await startEgressProxy(), await startEgressProxy()]
  for (const proxy of [old, anew]) proxy.refuse(407)
  const { account, keyring, begin, pass, settled } = await start(
    (setting) => {
      const { account, env } = set(setting)
      return { account, env: { ...env, AZURE_AUTHORITY_HOST: 'https://login.invalid' } }
    },
    { proxy: { url: new Secret(old.url), source: 'upstreams.far.proxy' } },
  )
  await begin()
  const own: UpstreamAccount = { name: 'a', key: new Secret(''), renewal: { cloud: account }, isEnabled: true }
  const through = (...proxies: { url: string }[]) =>
    proxies.map(({ url }, at) =>
      upstreamAt('https://far', {
        ...{ name: `far${at}`, accounts: [own] },
        proxy: { url: new Secret(url), source: 'upstreams.far.proxy' },
      }),
    )
  const asked = async () => {
    const before = [old.asked.length, anew.asked.length] as const
    pass(60_000)
    await settled()
    return [old.asked.length - before[0], anew.asked.length - before[1]]
  }
  assert.deepEqual(await asked(), [1, 0])
  keyring.adopt(through(anew, old))
  assert.deepEqual(await asked(), [0, 1], 'that of the first upstream with this source')
  await keyring.prepare(through(old))
  keyring.keep(through(anew))
  assert.deepEqual(await asked(), [0, 1])
})

test('clouds a week of hourly renewals leaves no moment without a valid credential, and makes one request each', async () => {
  const { cloud, key, begin, pass, settled } = await start(sources.find(({ name }) => name === 'web identity')!.set)
  await begin()
  const hours = 7 * 24
  for (let minute = 0; minute < hours * 60; minute++) {
    pass(60_000)
    if (key.credential!.isRenewing) await settled()
    assert.ok(key.value, `minute ${minute}`)
  }
  assert.equal(cloud.given, 1 + Math.floor((hours * 60) / 48))
  assert.deepEqual(cloud.mistakes, [])
})

test('clouds the health of an account is reset by another identity, or by another credential after a refusal of the key, and by no other renewal', async () => {
  for (const temporary of ['web identity', 'container, with the word of a file', 'instance metadata, version 2']) {
    const role = await start(sources.find(({ name }) => name === temporary)!.set)
    await role.begin()
    const { version, value } = role.key
    role.pass(2_880_000)
    await role.settled()
    assert.notEqual(role.key.value, value)
    assert.equal(role.key.version, version, 'every hour has another id and secret')
    for (const isForKey of [false, true]) {
      const refused = role.key.value
      role.key.doubt(isForKey)
      role.pass(5_000)
      await role.settled()
      assert.notEqual(role.key.value, refused)
      assert.equal(role.key.version, version + Number(isForKey))
    }
  }
  const fixed = await start(sources.find(({ name }) => name === 'shared files, the profile of AWS_PROFILE')!.set)
  await fixed.begin()
  fixed.key.doubt(true)
  fixed.pass(5_000)
  await fixed.settled()
  assert.equal(fixed.key.version, 1, 'the same keys are refused again')
  fixed.file('credentials', `[llm]\n${keys.replace('AKIAFILE', 'AKIANEW')}`)
  fixed.pass(600_000)
  await fixed.settled()
  assert.deepEqual([fixed.key.version, fixed.key.value], [2, 'AKIANEW'])
})

test('clouds the endpoints of an upstream’s accounts trust the certificates of that upstream, and no others', async () => {
  const { set } = sources.find(({ name }) => name === 'client secret of variables')!
  const authority = createAuthority()
  const { url } = await startTlsServer(authority.issue('localhost'))
  const { ca } = authority
  for (const [more, why] of [
    [{}, /cannot be reached \([A-Z_]+\)/],
    // What answers there is no token, but it was asked.
    [{ ca }, /the answer of Entra has no access_token/],
  ] as const) {
    const { begin, log } = await start((setting) => {
      const { account, env } = set(setting)
      return { account, env: { ...env, AZURE_AUTHORITY_HOST: url.replace('127.0.0.1', 'localhost') } }
    }, more)
    await begin()
    assert.match(log.at(-1)!, why)
  }
})
