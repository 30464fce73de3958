import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { apiKeyHeader, bearer } from '../../src/catalog/credentials.ts'
import { signRequest } from '../../src/clouds/sigv4.ts'
import { type CloudAccount, Secret, type UpstreamAccount } from '../../src/config/config.ts'
import { createKeyring } from '../../src/upstream/keyring.ts'
import { headersOf, type Target } from '../../src/upstream/target.ts'
import { modelOf } from '../native/models.ts'
import { atEnd } from '../support/at-end.ts'
import { canary, startCloud } from '../support/clouds.ts'
import { testFolder } from '../support/folder.ts'
import { upstreamAt } from '../support/upstream.ts'

/* Attempts of many accounts in any order: each has the credential of its own account, and no other (U14). */

const names = ['a', 'b', 'c']
const nowMs = Date.UTC(2026, 10, 27)
const secretOf = (name: string) => `${canary}-${name}`

test('clouds U14 in any order of accounts, bodies and paths, a request has its own account’s signature or bearer', async () => {
  const folder = testFolder('clouds')
  atEnd(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'credentials')
  const sections = names.map(
    (name) => `[${name}]\naws_access_key_id=AKIA${name}\naws_secret_access_key=${secretOf(name)}\n`,
  )
  writeFileSync(file, sections.join(''))
  const cloud = await startCloud(() => nowMs)
  const env = {
    ...{ AWS_SHARED_CREDENTIALS_FILE: file, AZURE_AUTHORITY_HOST: cloud.url, AZURE_TENANT_ID: 'the-tenant' },
    ...{ AZURE_CLIENT_ID: 'the-client', AZURE_CLIENT_SECRET: `${canary}-client` },
  }
  const keyring = createKeyring(
    () => 0,
    () => {},
    () => nowMs,
    env,
  )
  atEnd(keyring.close)
  const aws = { kind: 'aws', region: 'eu-central-1', sign: 'request' } as const
  const clouds: [name: string, cloud: CloudAccount][] = [
    ...names.map((profile): [string, CloudAccount] => [profile, { ...aws, profile, service: 'bedrock' }]),
    ['mantle', { ...aws, profile: 'a', service: 'bedrock-mantle' }],
    ['entra', { kind: 'azure', scope: 'https://ai.azure.com/.default' }],
  ]
  const accounts: UpstreamAccount[] = [
    ...clouds.map(([name, cloud]) => ({ name, key: new Secret(''), renewal: { cloud }, isEnabled: true })),
    { name: 'plain', key: new Secret('k-1'), isEnabled: true },
  ]
  const upstream = upstreamAt('https://far.example:8443', { accounts })
  keyring.adopt([upstream])
  await keyring.prepare([upstream])
  const targets = accounts.map((account): Target => {
    const key = keyring.keyOf(account)
    return {
      upstream,
      account,
      key,
      model: modelOf('messages'),
      path: '/m%3A1/it?b=1',
      streamPath: '/m/s',
      headers: [],
    }
  })
  const part = fc.tuple(fc.nat(targets.length - 1), fc.uint8Array({ maxLength: 40 }), fc.boolean(), fc.boolean())
  fc.assert(
    fc.property(fc.array(part, { minLength: 20, maxLength: 60 }), (attempts) => {
      for (const [index, bytes, isStream, isBearer] of attempts) {
        const target = targets[index]!
        const credential = isBearer ? bearer : apiKeyHeader
        const headers: [string, string][] = [['x-amzn-trace', `${index}`]]
        const request = { headers, credential, isStream, body: Buffer.from(bytes) }
        const flat = headersOf(target, request)
        const sent = new Map<string, string>()
        for (let i = 0; i < flat.length; i += 2) sent.set(flat[i]!, flat[i + 1]!)
        assert.equal(sent.size, flat.length / 2, 'no header twice')
        const { name, renewal } = target.account!
        const cloud = renewal && 'cloud' in renewal ? renewal.cloud : undefined
        if (cloud?.kind === 'azure') assert.equal(sent.get('authorization'), `Bearer ${canary}-token-1`)
        else if (cloud?.kind !== 'aws')
          assert.deepEqual(
            [sent.get('authorization'), sent.get('x-api-key')],
            isBearer ? ['Bearer k-1', undefined] : [undefined, 'k-1'],
          )
        else {
          const profile = cloud.profile!
          const path = isStream ? '/m/s' : '/m%3A1/it?b=1'
          const own = signRequest(
            {
              method: 'POST',
              host: 'far.example:8443',
              path,
              headers: ['content-type', 'application/json', ...headers.flat()],
              body: request.body,
            },
            { id: `AKIA${profile}`, secret: secretOf(profile) },
            { region: 'eu-central-1', service: name === 'mantle' ? 'bedrock-mantle' : 'bedrock' },
            nowMs,
          )
          for (const [header, value] of own) assert.equal(sent.get(header), value, name)
        }
      }
    }),
  )
})
