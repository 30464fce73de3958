import assert from 'node:assert/strict'
import test from 'node:test'
import { createBooks } from '../../src/accounts/books.ts'
import { fetchHttp } from '../../src/upstream/http-fetch.ts'
import { TestBrowser } from '../support/browser.ts'
import { createAuthority } from '../support/certificates.ts'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { startTestGateway } from '../support/gateway.ts'
import { standInSecret, startStandIn } from '../support/stand-in-issuer.ts'

const name = 'idp.corp.test'

/** A provider with a certificate of the company, which only the company's proxy reaches. */
async function start(more: (reach: { caFile: string; proxy: string }) => Record<string, unknown>) {
  const authority = createAuthority()
  const standIn = await startStandIn({}, { name, pair: authority.issue(name) })
  const proxy = await startEgressProxy({ [`${name}:443`]: `127.0.0.1:${standIn.port}` })
  const rules = [{ groups: ['developers'], account: 'tester' }]
  const own = { issuer: standIn.issuer, client_id: 'triwire', client_secret: standInSecret, rules }
  const reach = { caFile: authority.caFile, proxy: proxy.url }
  const gateway = await startTestGateway({ config: { sign_in: { ...own, ...more(reach) } } })
  const books = createBooks(gateway.store.asked, gateway.nowMs)
  const { id, userCode } = await books.beginGrant({ kind: 'device' })
  const page = `${gateway.url}/console/device?user_code=${userCode}`
  return { authority, proxy, gateway, books, id, page }
}

test('Y27 only the provider is asked through the proxy and with the certificates of sign_in', async () => {
  const { authority, proxy, books, id, page } = await start(({ caFile, proxy }) => ({ ca_file: caFile, proxy }))
  const browser = new TestBrowser()
  const { next } = await browser.follow(await browser.go(page), 'Continue', { until: ({ host }) => host === name })
  // The person's own browser reaches the provider by itself.
  const before = proxy.asked.length
  const { headers } = await fetchHttp(next!, { ca: authority.ca, proxy: new URL(proxy.url) })
  proxy.asked.splice(before, 1)
  const asked = await browser.go(headers.get('location')!, { from: 'https://idp.corp.test/' })
  await browser.press(asked, 'approve')
  assert.equal((await books.findGrant({ id }))?.state, 'approved')
  // Metadata, then the token and the keys: all of them by tunnels.
  assert.deepEqual([...new Set(proxy.asked)], [`CONNECT ${name}:443`])
  assert.equal(proxy.asked.length, 3)
})

test('Y27 an untrusted certificate, or a proxy that refuses, leads to a page and a logged reason', async () => {
  const untrusted = await start(({ proxy }) => ({ proxy }))
  const refused = await start(({ caFile, proxy }) => ({ ca_file: caFile, proxy }))
  refused.proxy.refuse(407)
  for (const [{ page, gateway, books, id }, cause] of [
    [untrusted, /certificate|SELF_SIGNED|UNABLE_TO/i],
    [refused, /407/],
  ] as const) {
    const browser = new TestBrowser()
    const told = await browser.follow(await browser.go(page), 'Continue')
    assert.deepEqual([told.status, /does not answer/.test(told.text)], [503, true])
    assert.equal((await books.findGrant({ id }))?.state, 'pending')
    const line = await gateway.logWith({ event: 'sign_in_failed', problem: 'unreachable' })
    assert.match(`${line['cause']}`, cause)
  }
})
