import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import test from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { ask, explainFailure } from '../../src/cli/ask.ts'
import { atEnd } from '../support/at-end.ts'
import { createAuthority } from '../support/certificates.ts'
import { listen } from '../support/listen.ts'

/* What a person reads when a command gets no answer: each kind of failure happens for real, and is worded by its code. */

type Failure = { url: string; proxy?: string; says: RegExp; late?: boolean }

const failures: Record<string, () => Promise<Failure>> = {
  'nobody listens': async () => ({ url: 'http://127.0.0.1:9', says: /^nothing listens there \(ECONNREFUSED\)$/ }),
  'no such host': async () => ({
    url: 'http://nobody.invalid',
    says: /^there is no such host \((ENOTFOUND|EAI_AGAIN)\)$/,
  }),
  'bytes that are no HTTP': async () => ({
    url: await playing('SSH-2.0-x\r\n'),
    says: /^it closed the connection or speaks no HTTP there: does it want https:\/\/\? \(EBADMSG\)$/,
  }),
  'a connection that is closed': async () => ({
    url: await playing(''),
    says: /^it closed the connection or speaks no HTTP there: does it want https:\/\/\? \(ECONNRESET\)$/,
  }),
  'no TLS': async () => ({
    url: (await playing('HTTP/1.1 400 No\r\n\r\n')).replace('http:', 'https:'),
    says: /^it speaks plain HTTP there: write http:\/\/ for https:\/\/ \(ERR_SSL_WRONG_VERSION_NUMBER\)$/,
  }),
  'a certificate that is not trusted': async () => {
    const server = createTlsServer(createAuthority().issue('localhost'))
    server.on('tlsClientError', () => {})
    const url = `https://localhost:${await listen(server)}`
    return { url, says: /^its certificate is not trusted: name its authority in NODE_EXTRA_CA_CERTS \(\w+\)$/ }
  },
  'no answer in time': async () => ({ url: await playing(undefined), says: /^too late$/, late: true }),
  'a proxy that is not there': async () => ({
    url: 'http://far.example',
    proxy: 'http://127.0.0.1:9',
    says: /^the proxy of http_proxy cannot be reached: nothing listens there \(ECONNREFUSED\)$/,
  }),
  'a proxy that wants credentials, asked in absolute form': async () => ({
    url: 'http://far.example',
    proxy: await playing('HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n'),
    says: /^the proxy of http_proxy wants other credentials$/,
  }),
  'a proxy that wants credentials, asked for a tunnel': async () => ({
    url: 'https://far.example',
    proxy: await playing('HTTP/1.1 401 No\r\n\r\n'),
    says: /^the proxy of https_proxy wants other credentials$/,
  }),
  'a proxy that refuses': async () => ({
    url: 'https://far.example',
    proxy: await playing('HTTP/1.1 502 No\r\n\r\n'),
    says: /^the proxy of https_proxy refuses, or does not reach it \(status 502\)$/,
  }),
  'a proxy that speaks no HTTP': async () => ({
    url: 'https://far.example',
    proxy: await playing('SSH-2.0-x\r\n'),
    says: /^the proxy of https_proxy speaks no HTTP$/,
  }),
  'a proxy that is no address': async () => ({
    url: 'https://far.example',
    proxy: 'socks5://127.0.0.1:9',
    says: /^the proxy of https_proxy must be http:\/\//,
  }),
}

/** A server that answers the first bytes of a connection with these and ends it; undefined: it says nothing. @returns its URL */
async function playing(answer: string | undefined): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {}).once('data', () => void (answer !== undefined && socket.end(answer)))
    atEnd(() => void socket.destroy())
  })
  return `http://127.0.0.1:${await listen(server)}`
}

for (const [name, fail] of Object.entries(failures))
  test(`N-F4 a person reads why there is no answer: ${name}`, async () => {
    const { url, proxy, says, late } = await fail()
    const variable = `${url.split(':')[0]}_proxy`
    if (proxy !== undefined) {
      process.env[variable] = proxy
      atEnd(() => void delete process.env[variable])
    }
    const signal = late ? AbortSignal.timeout(1) : AbortSignal.timeout(60_000)
    const error = await ask(url, { signal }).then(
      () => assert.fail('it was answered'),
      (cause: unknown) => cause,
    )
    assert.match(explainFailure(error, url, 'too late'), says)
    delete process.env[variable]
  })
