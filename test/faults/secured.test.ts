import { connect, createServer as createPlainServer } from 'node:net'
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { atEnd } from '../support/at-end.ts'
import { createAuthority, type Pair } from '../support/certificates.ts'
import { listen } from '../support/listen.ts'
import { type Bench, openRows, type Told } from './bench.ts'

/* Row F-U4 of docs/faults.md, with certificates of an authority of our own that this process trusts. */

const row = openRows()

const refused: Told = {
  client: 502,
  ledger: 'none',
  log: { outcome: 'upstream_error', code: 'upstream_error', cause: 'upstream_tls', attempts: 1 },
}

/** Of an authority that this process shall trust, and of another. */
function makePairs(): { ca: string; good: Pair; expired: Pair; foreign: Pair; misnamed: Pair } {
  const { ca, issue } = createAuthority()
  return {
    ca,
    good: issue('localhost'),
    expired: issue('localhost', -1),
    foreign: createAuthority().issue('localhost'),
    misnamed: issue('elsewhere.example'),
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
