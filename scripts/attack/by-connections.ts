import { randomBytes } from 'node:crypto'
import { createKey } from '../../src/accounts/keys.ts'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import type { Attack } from './attacker.ts'
import { bodyOf, paths } from './wires.ts'

/* Attacks below the level of requests: connections, framing, keys. */

/** Makes a well-formed key that was never issued, so that the server must look it up. */
const wrongKey = () => createKey().key
const control = '\u001b]0;OWNED\u0007\u001b[31m'

const requestOf = (path: string, key: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`

const post = `POST ${paths.chat} HTTP/1.1\r\n`
const framing: readonly (string | Buffer)[] = [
  `${post}host: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n`,
  `${post}host: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}   `,
  `${post}host: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  `${post}host: x\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n`,
  `${post}host: x\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}`,
  `${post}host: x\r\nhost: y\r\n\r\n`,
  `${post}host: x\r\ncontent-length: -1\r\n\r\n`,
  `${post}\r\n`,
  `GET / HTTP/1.1\r\nhost: x\r\n${Array.from({ length: 200 }, (_, i) => `x-${i}: y`).join('\r\n')}\r\n\r\n`,
  `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u0000\u0000\u0000\u0004\u0000\u0000\u0000\u0000\u0000',
  Buffer.from('16030100c8010000c40303', 'hex'),
  'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n',
  `GET / HTTP/1.1\r\nhost: x\r\nx: a\r\n folded\r\nx\u0000: b\r\n\r\n`,
  `${post}host: x\r\nexpect: 100-continue\r\ncontent-length: 9999999\r\n\r\n`,
]

export const attacksByConnections: Attack[] = [
  {
    name: 'log-injection',
    finding: 'B11',
    run: (attacker) =>
      attacker.loops(16, (loop) => {
        const key = loop % 2 === 0 ? attacker.key() : wrongKey()
        const texts = [
          `GET /v1/${key}${control} HTTP/1.1\r\nhost: x\r\n\r\n`,
          `GET /v1/${key} HTTP/1.1\r\nhost: x\r\nhost: ${key}\r\n\r\n`,
          `GET /${control}${key.repeat(100)} HTTP/1.1\r\nhost: x\r\n\r\n`,
          `${key}${control} / HTTP/1.1\r\nhost: x\r\n\r\n`,
          requestOf(`/v1/messages?key=${key}`, `${key}${control}`, '{}'),
          requestOf(paths.chat, key, JSON.stringify({ model: `${key}${control}`, messages: [] })),
        ]
        return attacker.send(texts[attacker.signal.aborted ? 0 : Math.floor(Math.random() * texts.length)]!, 500)
      }),
  },
  {
    name: 'framing',
    finding: 'F-C13',
    run: (attacker) =>
      attacker.loops(16, () => {
        const known = framing[Math.floor(Math.random() * (framing.length + 2))]
        return attacker.send(known ?? randomBytes(500), 500)
      }),
  },
  {
    name: 'pipelines',
    finding: 'F-C11',
    run: (attacker) =>
      attacker.loops(4, async (loop) => {
        const texts = Array.from({ length: 50 }, (_, i) => {
          const wire = clientWireNames[i % 3]!
          const text =
            i % 2 === 0 ? bodyOf(wire, `refuse-${wire}`, 'Hi') : bodyOf(wire, `stall-${wire}`, 'Hi', { stream: true })
          return requestOf(paths[wire], attacker.key(), loop % 2 === 0 ? bodyOf(wire, 'nobody', 'Hi') : text)
        })
        for (let i = 1; i < texts.length; i++) attacker.count()
        await attacker.send(texts.join(''), 300)
      }),
  },
  {
    name: 'aborts',
    finding: 'F-C5',
    run: (attacker) =>
      attacker.loops(24, async (loop) => {
        const wire = clientWireNames[loop % 3]!
        const socket = await attacker.open()
        const text = requestOf(
          paths[wire],
          attacker.key(),
          bodyOf(wire, `payer-${wire}`, 'Hi', { stream: loop % 2 === 0 }),
        )
        // Cuts the request anywhere in its head or body, or while the answer is awaited.
        socket.write(text.slice(0, Math.random() < 0.3 ? Math.floor(Math.random() * text.length) : undefined))
        await attacker.wait(Math.random() * 30)
        if (Math.random() < 0.5) socket.resetAndDestroy()
        else socket.end()
        await attacker.wait(50)
        socket.destroy()
      }),
  },
  {
    name: 'slow-headers',
    finding: 'F-C1',
    run: (attacker) =>
      attacker.loops(600, async () => {
        const socket = await attacker.open()
        const text = `POST ${paths.chat} HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(100)}`
        for (let i = 0; i < text.length && !socket.destroyed && !attacker.signal.aborted; i++) {
          socket.write(text[i]!)
          await attacker.wait(500)
        }
        socket.destroy()
      }),
  },
  {
    name: 'wrong-keys',
    finding: 'F-C44',
    // Half of the connections come from the payers' own address.
    run: (attacker) =>
      attacker.loops(24, (loop) => {
        const wire = clientWireNames[loop % 3]!
        const localAddress = loop % 2 === 0 ? '127.0.0.1' : `127.0.0.${2 + (loop % 200)}`
        const key = loop % 4 < 2 ? wrongKey() : `sk-tri-${'x'.repeat(46)}`
        return attacker.post(paths[wire], bodyOf(wire, `payer-${wire}`, 'Hi'), { key, localAddress })
      }),
  },
  {
    name: 'descriptors',
    finding: 'B24',
    // Three times as many connections as the server accepts, and more than it has descriptors.
    async run(attacker) {
      for (let i = 0; i < 4_500 && !attacker.signal.aborted; i++) {
        await attacker.open().catch(() => attacker.wait(5))
        if (i % 20 === 0) await attacker.wait(1)
      }
      await attacker.loops(50, async () => {
        await attacker.open()
        await attacker.wait(100)
      })
    },
  },
]
