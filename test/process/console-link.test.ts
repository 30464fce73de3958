import assert from 'node:assert/strict'
import test from 'node:test'
import type { Config } from '../../src/config/config.ts'
import { findConsole, makeConsoleLink } from '../../src/process/console-link.ts'

const at = (host: string, port = 8081) => ({ host, port })
const tls = { cert: '', key: '', certFile: '' } as unknown as Config['adminTls']

const places: [
  name: string,
  admin: Partial<Config>,
  listening: Parameters<typeof findConsole>[1],
  url: string | undefined,
][] = [
  ['on loopback', {}, { adminAddress: at('127.0.0.1') }, 'http://127.0.0.1:8081/console/'],
  ['on loopback of IPv6', {}, { adminAddress: at('::1') }, 'http://[::1]:8081/console/'],
  ['with TLS', { adminTls: tls }, { adminAddress: at('192.0.2.7') }, 'https://192.0.2.7:8081/console/'],
  [
    'with TLS on all addresses, which is no name that the listener accepts',
    { adminTls: tls },
    { adminAddress: at('0.0.0.0') },
    'https://127.0.0.1:8081/console/',
  ],
  [
    'in clear from other machines, beside which loopback answers',
    {},
    { adminAddress: at('0.0.0.0'), ownAddress: at('127.0.0.1', 9_000) },
    'http://127.0.0.1:9000/console/',
  ],
  ['in clear of a worker, whose own address is not known', {}, { adminAddress: at('0.0.0.0') }, undefined],
  [
    'behind a proxy, below a path',
    { adminUrl: 'https://tools.example/triwire' },
    { adminAddress: at('127.0.0.1') },
    'https://tools.example/triwire/console/',
  ],
]

for (const [name, admin, listening, url] of places)
  test(`CON-16 the address at which the console is opened: ${name}`, () => {
    assert.equal(findConsole(admin as Config, listening), url)
  })

test('CON-P7 no token is made for an address that others could read in transit, or for output that was not asked to contain one', async () => {
  // There is no store, so a try to make a token would leave the address as it is, too: the store must not be opened.
  const config = {
    get store(): never {
      return assert.fail('a token is made')
    },
  } as unknown as Config
  const inClear = 'http://tools.example/console/'
  assert.equal(await makeConsoleLink(config, inClear, true), inClear)
  assert.equal(await makeConsoleLink(config, undefined, true), undefined)
  if (!process.stdout.isTTY)
    assert.equal(await makeConsoleLink(config, 'http://[::1]:1/console/', false), 'http://[::1]:1/console/')
})
