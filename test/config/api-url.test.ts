import assert from 'node:assert/strict'
import test from 'node:test'
import { findClientUrl } from '../../src/config/client-url.ts'
import { loadText } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'

function judge(more: Record<string, unknown>): string[] {
  try {
    const { warnings, ...config } = loadText(JSON.stringify(more), 'a file', { isWithoutFiles: true }, {})
    return [findClientUrl(config).url, ...warnings.map(({ message }) => message)]
  } catch (error) {
    assert.ok(error instanceof ConfigError, `${error}`)
    return error.problems.map(({ message }) => message)
  }
}

const wrong = 'api_url must be the address of a gateway, such as https://gateway.example or http://10.0.0.7:8080'
const tls = { cert: 'cert.pem', key: 'key.pem' }

test('Y19 CON-3 api_url is checked: its form, TLS, the internet, this machine, and the admin listener', () => {
  const cases: readonly (readonly [Record<string, unknown>, ...(string | RegExp)[]])[] = [
    [{}, 'http://127.0.0.1:8080'],
    [{ listen: '0.0.0.0:9000' }, 'http://127.0.0.1:9000'],
    [{ listen: '[::]:9000', tls }, 'https://127.0.0.1:9000'],
    [{ api_url: 'https://llm.example' }, 'https://llm.example'],
    [{ api_url: 'https://llm.example/v1/' }, 'https://llm.example'],
    [{ api_url: 'https://Example.com:8443/llm/v1' }, 'https://example.com:8443/llm'],
    [{ api_url: 'http://gateway:8080' }, 'http://gateway:8080'],
    [{ api_url: 'http://10.1.2.3:8080' }, 'http://10.1.2.3:8080'],
    ...[
      'llm.example',
      'ftp://x',
      'https://',
      'https://a:b@x',
      'https://x/?a=b',
      'https://x/#a',
      "https://x/'",
      'https://x/$Y',
    ].map((url) => [{ api_url: url }, wrong] as const),
    [{ api_url: 'http://0.0.0.0:8080' }, /stands for all addresses/],
    [{ api_url: 'http://[::]:8080' }, /stands for all addresses/],
    [{ api_url: 'http://llm.example' }, 'http://llm.example', /api_url lets clients send their keys in plain text/],
    [
      { api_url: 'http://10.1.2.3', tls },
      'http://10.1.2.3',
      /api_url begins with http:\/\/, and the listener speaks TLS/,
    ],
    ...['127.0.0.1:8080', 'localhost', '[::1]:8080'].map(
      (host) => [{ api_url: `http://${host}` }, `http://${host}`, /api_url is of use on this machine alone/] as const,
    ),
    [{ api_url: 'http://127.0.0.1:8081' }, 'http://127.0.0.1:8081', /api_url is the address of the admin listener/],
    [
      { api_url: 'https://x.example/t/', admin: { public_url: 'https://x.example/t' } },
      'https://x.example/t',
      /api_url is the address of the admin listener/,
    ],
    [{ api_url: 'https://x.example/llm', admin: { public_url: 'https://x.example/t' } }, 'https://x.example/llm'],
  ]
  for (const [more, ...expected] of cases) {
    const told = judge(more)
    const name = JSON.stringify(more)
    assert.equal(told.length, expected.length, `${name}: ${told}`)
    for (const [at, one] of expected.entries())
      if (typeof one === 'string') assert.equal(told[at], one, name)
      else assert.match(told[at]!, one, name)
  }
})
