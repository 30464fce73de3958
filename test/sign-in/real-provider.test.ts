import assert from 'node:assert/strict'
import test from 'node:test'
import { createProvider } from '../../src/sign-in/provider.ts'
import { TestBrowser } from '../support/browser.ts'
import { type ProviderPerson, providerSecret, startIdentityProvider } from '../support/identity-provider.ts'

const dev: ProviderPerson = { sub: 'u-1', email: 'dev@corp.test', name: 'Dev One', groups: ['developers'] }
const redirectUri = 'http://127.0.0.1:9/console/callback'

test('issue 47 a real provider: sign-in, rotated refreshes, a removed group, a removed person, sign-out', async () => {
  const idp = await startIdentityProvider([redirectUri], dev)
  const settings = {
    ...{ issuer: idp.issuer, clientId: 'triwire', clientSecret: providerSecret, groupsClaim: 'groups' },
    routeTo: () => ({}),
  }
  const provider = createProvider(() => settings, { clockMs: () => 0 })
  const attempt = { state: 's'.repeat(43), nonce: 'n'.repeat(43), verifier: 'v'.repeat(43) }
  const browser = new TestBrowser()
  const isBack = (url: URL) => url.href.startsWith(redirectUri)
  const { next } = await browser.go(await provider.begin(attempt, redirectUri), { until: isBack })
  const { refreshToken, idToken, ...identity } = await provider.finish(attempt, next!)
  assert.deepEqual(identity, {
    ...{ issuer: idp.issuer, subject: 'u-1', email: 'dev@corp.test', name: 'Dev One' },
    ...{ groups: ['developers'], groupsFrom: 'id_token' },
  })
  idp.set('u-1', { ...dev, groups: ['sales'] })
  const base = { subject: 'u-1', groupsFrom: 'id_token', refreshToken: refreshToken! } as const
  const renewed = await provider.renew(base)
  assert.ok(renewed.kind === 'yes', JSON.stringify(renewed))
  assert.deepEqual(renewed.identity.groups, ['sales'])
  assert.notEqual(renewed.identity.refreshToken, refreshToken)
  const end = await provider.endSessionUrl(idToken, redirectUri.replace('callback', 'signed-out'))
  assert.match(end!.href, /\/session\/end\?.*id_token_hint=/)
  assert.equal((await browser.go(end!)).status, 200)
  idp.set('u-1', undefined)
  const gone = await provider.renew({ ...base, refreshToken: renewed.identity.refreshToken! })
  assert.equal(gone.kind, 'no')
})
