import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { after, before } from 'node:test'
import { until } from '../support/waiting.ts'
import { type Bench, openRows, type Told } from './bench.ts'

/*
 * Row F-U3 of docs/faults.md. It wants to be the machine's name server, so it runs in a network of its own only:
 * scripts/fault-matrix.ts sees to that, and says so by TRIWIRE_NAMES.
 */

const row = openRows()

const isInside = process.env['TRIWIRE_NAMES'] === 'own'

/** What is told of a name; `silence`: nothing at all. */
const names = new Map<string, string | 'silence'>()
const server = createSocket('udp4')

if (isInside) {
  before(() => {
    server.on('message', (query, peer) => {
      const reply = replyTo(query)
      if (reply) server.send(reply, peer.port, peer.address)
    })
    return new Promise<void>((done) => void server.bind(53, '127.0.0.1', done))
  })
  after(() => server.close())
}

/** One question, one answer of type A, or none of that name (RFC 1035). */
function replyTo(query: Buffer): Buffer | undefined {
  const labels: string[] = []
  let at = 12
  while (query[at] !== 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!))
    at += 1 + query[at]!
  }
  const question = query.subarray(12, at + 5)
  const isA = query.readUInt16BE(at + 1) === 1
  const told = names.get(labels.join('.').toLowerCase())
  if (told === 'silence') return undefined
  const head = Buffer.from(query.subarray(0, 12))
  head.writeUInt16BE(told === undefined ? 0x8183 : 0x8180, 2)
  head.writeUInt16BE(told !== undefined && isA ? 1 : 0, 6)
  head.writeUInt32BE(0, 8)
  if (told === undefined || !isA) return Buffer.concat([head, question])
  const address = Buffer.from(told.split('.').map(Number))
  return Buffer.concat([head, question, Buffer.from('c00c00010001000000000004', 'hex'), address])
}

const refused = (cause: RegExp, attempts = 1): Told => ({
  client: 502,
  ledger: 'none',
  log: { outcome: 'upstream_error', code: 'upstream_error', cause: cause as never, attempts },
})

function go(bench: Bench, name: string): void {
  const { port } = new URL(bench.upstream.url)
  const sim = { base_url: `http://${name}:${port}`, accounts: [{ name: 'a', key: 'upstream-key-a' }] }
  bench.gateway.reload({ upstreams: { ...bench.upstreams, sim }, timeouts: { connect: '2s' } })
}

if (isInside) {
  row(
    'F-U3',
    'a name that is unknown, slow, or suddenly another address: 502, and no other host is tried',
    { own: {}, isSlow: true },
    async (bench) => {
      bench.upstream.play(bench.good.whole)
      go(bench, 'nobody.example')
      await bench.check(await bench.ask(), refused(/^upstream_dns$/))
      names.set('slow.example', 'silence')
      go(bench, 'slow.example')
      await bench.check(await bench.ask(), refused(/^upstream_(dns|connect)$/))
      assert.equal(bench.upstream.connections, 0)
      names.set('moving.example', '127.0.0.1')
      go(bench, 'moving.example')
      await bench.check(await bench.ask(), { client: 'whole', ledger: 'final', log: { outcome: 'ok' } })
      // Suddenly it names an address of its operator's own network, where nobody listens.
      names.set('moving.example', '127.0.0.9')
      const { closed } = bench.upstream
      bench.upstream.play(
        (socket) => void socket.end('HTTP/1.1 400 Bad\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'),
      )
      await bench.ask()
      await until(() => bench.upstream.closed > closed)
      // A refused connection is tried once more (Y26), at the same name.
      await bench.check(await bench.ask(), refused(/^upstream_connect$/, 2))
      assert.equal(bench.upstream.requests.length, 1)
    },
  )
}
