import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { inspect } from 'node:util'
import { loadConfig, loadText } from '../../src/config/load.ts'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'

/* Accounts whose credentials a cloud gives (clouds 7). */

const runtime = 'https://bedrock-runtime.eu-central-1.amazonaws.com/anthropic'

function load(account: object, upstream: object = {}) {
  const up = { base_url: runtime, accounts: [{ name: 'a', ...account }], ...upstream }
  return loadText(JSON.stringify({ upstreams: { up } }), 'a file', {}, {}).upstreams.get('up')!.accounts[0]!
}

const cloudOf = (account: object, upstream: object = {}) => {
  const { renewal, key } = load(account, upstream)
  assert.equal(key.reveal(), '')
  return renewal && 'cloud' in renewal ? renewal.cloud : undefined
}

const hosts: [host: string, service: string, region: string][] = [
  ['bedrock-runtime.eu-central-1.amazonaws.com', 'bedrock', 'eu-central-1'],
  ['bedrock-runtime-fips.us-gov-west-1.amazonaws.com', 'bedrock', 'us-gov-west-1'],
  ['bedrock-runtime.cn-north-1.amazonaws.com.cn', 'bedrock', 'cn-north-1'],
  ['bedrock-runtime.eusc-de-east-1.amazonaws.eu', 'bedrock', 'eusc-de-east-1'],
  ['vpce-1a-2b.bedrock-runtime.us-east-1.vpce.amazonaws.com', 'bedrock', 'us-east-1'],
  ['bedrock-mantle.us-east-2.api.aws', 'bedrock-mantle', 'us-east-2'],
  ['aws-external-anthropic.us-west-2.api.aws', 'aws-external-anthropic', 'us-west-2'],
]

test('clouds 7 the service and region of a signature are read from an AWS host, and from the settings for another host', () => {
  for (const [host, service, region] of hosts)
    assert.deepEqual(cloudOf({ aws: {} }, { base_url: `https://${host}` }), {
      kind: 'aws',
      service,
      region,
      sign: 'request',
    })
  const own = { region: 'eu-central-1', service: 'bedrock' }
  assert.deepEqual(cloudOf({ aws: own }, { base_url: 'https://proxy.example' }), {
    kind: 'aws',
    ...own,
    sign: 'request',
  })
  assert.deepEqual(cloudOf({ aws: { region: 'eu-central-1', service: 'other' } }), {
    ...{ kind: 'aws', region: 'eu-central-1', service: 'other', sign: 'request' },
  })
})

test('clouds 1.4 the variables of AWS give the region if neither the settings nor the host do', () => {
  const regions: [env: NodeJS.ProcessEnv, aws: object, host: string, region: string][] = [
    [{ AWS_REGION: 'eu-west-1', AWS_DEFAULT_REGION: 'eu-west-2' }, {}, 'https://proxy.example', 'eu-west-1'],
    [{ AWS_REGION: '', AWS_DEFAULT_REGION: 'eu-west-2' }, {}, 'https://proxy.example', 'eu-west-2'],
    [{ AWS_REGION: 'eu-west-1' }, { region: 'eu-west-3' }, 'https://proxy.example', 'eu-west-3'],
    [{ AWS_REGION: 'eu-west-1' }, {}, runtime, 'eu-central-1'],
  ]
  for (const [env, aws, host, region] of regions) {
    const up = { base_url: host, accounts: [{ name: 'a', aws: { service: 'bedrock', ...aws } }] }
    const { upstreams } = loadText(JSON.stringify({ upstreams: { up } }), 'a file', {}, env)
    assert.deepEqual(upstreams.get('up')!.accounts[0]!.renewal, {
      cloud: { kind: 'aws', service: 'bedrock', region, sign: 'request' },
    })
  }
})

test('clouds 7 a cloud account has its settings with their defaults, and shows no secret', () => {
  const role = 'arn:aws:iam::123456789012:role/path/llm'
  const said = { profile: 'p', role, external_id: 'e', session_name: 's1', sign: 'bearer' }
  assert.deepEqual(cloudOf({ aws: said }), {
    ...{ kind: 'aws', service: 'bedrock', region: 'eu-central-1', sign: 'bearer' },
    ...{ profile: 'p', role, externalId: 'e', sessionName: 's1' },
  })
  assert.deepEqual(cloudOf({ google: {} }), { kind: 'google' })
  assert.deepEqual(cloudOf({ azure: {} }), { kind: 'azure', scope: 'https://ai.azure.com/.default' })
  const account = load({ azure: { tenant: 't', client: 'c', secret: 'hidden-word' } })
  assert.doesNotMatch(`${inspect(account, { depth: 9 })}${JSON.stringify(account)}`, /hidden/)
})

const mistakes: [account: object, message: RegExp, upstream?: object][] = [
  [
    { aws: {}, key: 'k' },
    /accounts\[0\] must have one and no more of `key`, `key_file`, `key_command`, `aws`, `google`, `azure`/,
  ],
  [{ aws: {}, google: {} }, /must have one and no more of/],
  [{ aws: {}, key_lifetime: '5m' }, /key_lifetime is for `key_command`/],
  [{ aws: { regoin: 'x' } }, /aws\.regoin/],
  [{ aws: { region: 'frankfurt' } }, /aws\.region must be a region such as eu-central-1/],
  [
    { aws: { region: 'us-east-1' } },
    /aws\.region is another one than in the host of `base_url`, which says eu-central-1/,
  ],
  [
    { aws: { region: 'us-east-1' } },
    /aws\.service is missing: it is needed, because the host of `base_url` does not name it/,
    { base_url: 'https://h' },
  ],
  [{ aws: { service: 'bedrock' } }, /aws\.region is missing/, { base_url: 'https://h' }],
  [{ aws: { role: 'llm' } }, /aws\.role must be the ARN of a role/],
  [{ aws: { sign: 'never' } }, /aws\.sign must be/],
  [{ aws: {} }, /up\.key_header cannot be set with `aws`/, { key_header: 'x-api-key' }],
  [{ google: { credentials_file: 'gone' } }, /google\.credentials_file names a file that cannot be read \(ENOENT\)/],
  [{ google: { credentials_file: 'text' } }, /google\.credentials_file must hold credentials of Google in JSON/],
  [{ azure: { secret: 'hidden', secret_file: 'text' } }, /azure\.secret_file is set beside `secret`/],
  [{ azure: { secret_file: 'empty' } }, /azure\.secret_file holds no key: it is empty/],
  [{ azure: { scope: 'https://ai.azure.com' } }, /azure\.scope must end in \/\.default/],
]

test('clouds 7 a mistake in a cloud account names its field and the cure', () => {
  const folder = testFolder('clouds')
  atEnd(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'text'), 'hidden')
  writeFileSync(join(folder, 'empty'), '')
  for (const [account, message, upstream] of mistakes) {
    const up = { base_url: runtime, accounts: [{ name: 'a', ...account }], ...upstream }
    writeFileSync(join(folder, 'triwire.yaml'), JSON.stringify({ upstreams: { up } }))
    assert.throws(
      () => loadConfig({}, {}, folder),
      (error: Error) => {
        assert.match(error.message, message)
        assert.doesNotMatch(error.message, /hidden/)
        return true
      },
    )
  }
})

test('clouds 7 a command that asks no upstream needs no AWS_REGION', () => {
  const up = { base_url: 'https://h', accounts: [{ name: 'a', aws: { service: 'bedrock' } }] }
  const text = JSON.stringify({ upstreams: { up } })
  assert.throws(() => loadText(text, 'a file', {}, {}), /aws\.region is missing/)
  assert.ok(loadText(text, 'a file', { isWithoutKeys: true }, {}))
})

test('clouds 7 a command that asks no upstream needs no secret of Entra', () => {
  const up = { base_url: 'https://h', accounts: [{ name: 'a', azure: { secret: `\${UNSET}` } }] }
  const text = JSON.stringify({ upstreams: { up } })
  assert.throws(() => loadText(text, 'a file', {}, {}), /UNSET/)
  assert.ok(loadText(text, 'a file', { isWithoutKeys: true }, {}))
})
