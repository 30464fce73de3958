import type { Attack } from './attacker.ts'
import { bodyOf, paths } from './wires.ts'

/* Attacks by the content of a body. */

const shortOf = (bytes: number, part: string, open: string, close: string) =>
  Buffer.from(open + `${part},`.repeat(Math.floor(bytes / (part.length + 1))) + part + close)

const turns = (model: string, bytes: number) =>
  shortOf(bytes, '{"role":"user","content":"a"}', `{"model":"${model}","max_tokens":9,"messages":[`, ']}')

export const attacksByBodies: Attack[] = [
  {
    name: 'members',
    finding: 'B21',
    run(attacker) {
      const members = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`m${i}`, 'canary']))
      const bodies = [
        ['chat', bodyOf('chat', 'refuse-chat', 'Hi', { stream: true, stream_options: members })],
        ['messages', bodyOf('messages', 'refuse-messages', 'Hi', { metadata: members, user: 'me' })],
        [
          'messages',
          bodyOf('messages', 'refuse-messages', 'Hi', {
            thinking: { type: 'enabled', budget_tokens: 9_999, ...members },
          }),
        ],
        ['responses', bodyOf('responses', 'refuse-chat', 'Hi', { metadata: members })],
      ] as const
      return attacker.loops(4, async (loop) => {
        const [wire, body] = bodies[loop % bodies.length]!
        await attacker.post(paths[wire], body)
      })
    },
  },
  {
    name: 'worst-bodies',
    finding: 'B25',
    run(attacker) {
      const calls = shortOf(
        2_900_000,
        '{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}',
        '{"model":"refuse-chat","input":[',
        ']}',
      )
      const nested = Buffer.from(`{"model":"refuse-chat","input":${'['.repeat(2_000_000)}`)
      const bodies = [
        [paths.responses, calls],
        [paths.messages, turns('refuse-chat', 2_900_000)],
        [paths.responses, nested],
      ] as const
      return attacker.loops(4, (loop) => attacker.post(...bodies[loop % bodies.length]!))
    },
  },
  {
    name: 'counting',
    finding: 'B6',
    run(attacker) {
      const body = turns('payer-chat', 2_200_000)
      return attacker.loops(20, () => attacker.post('/v1/messages/count_tokens', body, { key: attacker.pauper() }))
    },
  },
  {
    name: 'unfinished-counting',
    finding: 'B6',
    async run(attacker) {
      await holdBodies(attacker, '/v1/messages/count_tokens', 150, () => attacker.pauper())
    },
  },
  {
    name: 'slow-bodies',
    finding: 'F-C2',
    run: (attacker) =>
      attacker.loops(200, async () => {
        const socket = await attacker.open()
        socket.write(headOf(paths.chat, attacker.key(), 100_000))
        for (let i = 0; i < 100 && !socket.destroyed && !attacker.signal.aborted; i++) {
          socket.write('{')
          await attacker.wait(500)
        }
        socket.destroy()
      }),
  },
  {
    name: 'oversized-chunks',
    finding: 'F-C30',
    run(attacker) {
      const piece = Buffer.alloc(65_536, 'x')
      return attacker.loops(8, async (loop) => {
        const socket = await attacker.open()
        const key = loop % 2 === 0 ? attacker.key() : 'sk-none'
        socket.write(
          `POST ${paths.chat} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ntransfer-encoding: chunked\r\n\r\n`,
        )
        // Sends to the limit, and beyond it as long as the server reads.
        for (let sent = 0; sent < 40_000_000 && !socket.destroyed && !attacker.signal.aborted; sent += piece.length) {
          socket.write('10000\r\n')
          socket.write(piece)
          if (!socket.write('\r\n'))
            await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), attacker.wait(200)])
        }
        socket.destroy()
      })
    },
  },
]

function headOf(path: string, key: string, length: number): string {
  return `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${length}\r\n\r\n`
}

/** Sends many large bodies that stop before their last bytes. */
async function holdBodies(
  attacker: Parameters<Attack['run']>[0],
  path: string,
  count: number,
  key: () => string,
): Promise<void> {
  const most = Buffer.alloc(5_000_000, ' ')
  await attacker.loops(count, async () => {
    const socket = await attacker.open()
    socket.write(headOf(path, key(), most.length + 100))
    socket.write(most)
    await Promise.race([new Promise((resolve) => socket.once('close', resolve)), attacker.wait(60_000)])
    socket.destroy()
  })
}
