import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer as createPlainServer } from 'node:net'
import { join } from 'node:path'
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'
import { listen } from '../support/listen.ts'
import { type Bench, row, type Told } from './bench.ts'

/* Row F-U4 of docs/faults.md, with certificates of an authority of our own that this process trusts. */

const refused: Told = {
  client: 502,
  ledger: 'none',
  log: { outcome: 'upstream_error', code: 'upstream_error', cause: 'upstream_tls', attempts: 1 },
}

type Pair = { key: Buffer; cert: Buffer }

/** Made by openssl; `days` before now for one that has expired. */
function makePairs(): { ca: string; good: Pair; expired: Pair; foreign: Pair; misnamed: Pair } {
  const folder = testFolder('tls')
  const at = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  for (const name of ['ca', 'other']) {
    openssl(
      'req',
      '-x509',
      ...curve,
      '-keyout',
      at(`${name}.key`),
      '-out',
      at(`${name}.pem`),
      '-subj',
      `/CN=${name}`,
      '-days',
      '30',
    )
  }
  const leaf = (name: string, ca: string, host: string, days: string): Pair => {
    writeFileSync(at(`${name}.ext`), `subjectAltName=DNS:${host}\n`)
    openssl('req', ...curve, '-keyout', at(`${name}.key`), '-out', at(`${name}.csr`), '-subj', `/CN=${host}`)
    const signed = ['-CA', at(`${ca}.pem`), '-CAkey', at(`${ca}.key`), '-CAcreateserial', '-days', days]
    openssl(
      'x509',
      '-req',
      '-in',
      at(`${name}.csr`),
      ...signed,
      '-extfile',
      at(`${name}.ext`),
      '-out',
      at(`${name}.pem`),
    )
    return { key: readFileSync(at(`${name}.key`)), cert: readFileSync(at(`${name}.pem`)) }
  }
  return {
    ca: readFileSync(at('ca.pem'), 'utf8'),
    good: leaf('good', 'ca', 'localhost', '30'),
    expired: leaf('expired', 'ca', 'localhost', '-1'),
    foreign: leaf('foreign', 'other', 'localhost', '30'),
    misnamed: leaf('misnamed', 'ca', 'elsewhere.example', '30'),
  }
}

/** The upstream behind TLS with this certificate. */
async function secured(bench: Bench, pair: Pair): Promise<number> {
  const server = createServer(pair, (socket) => {
    const upstream = connect(Number(new URL(bench.upstream.url).port), '127.0.0.1')
    for (const one of [socket, upstream]) one.on('error', () => {})
    socket.pipe(upstream).pipe(socket)
  })
  server.on('tlsClientError', () => {})
  return listen(server)
}

row(
  'F-U4',
  'a certificate that is expired, of a foreign authority, or of another name, and what is no TLS: 502',
  { own: {}, isSlow: true },
  async (bench) => {
    const { ca, ...pairs } = makePairs()
    const trusted = getCACertificates('default')
    setDefaultCACertificates([...trusted, ca])
    atEnd(() => setDefaultCACertificates(trusted))
    bench.upstream.play(bench.good.whole)
    const go = (port: number) => {
      const sim = { base_url: `https://localhost:${port}`, accounts: [{ name: 'a', key: 'upstream-key-a' }] }
      bench.gateway.reload({ upstreams: { ...bench.upstreams, sim } })
    }
    go(await secured(bench, pairs.good))
    await bench.check(await bench.ask(), { client: 'whole', ledger: 'final', log: { outcome: 'ok' } })
    for (const pair of [pairs.expired, pairs.foreign, pairs.misnamed]) {
      go(await secured(bench, pair))
      await bench.check(await bench.ask(), refused)
    }
    go(
      await listen(
        createPlainServer((socket) => void socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n')),
      ),
    )
    await bench.check(await bench.ask(), refused)
    if (bench.upstream.requests.length !== 1) throw new Error('a request was sent')
  },
)
