import { clientWireNames } from '../../src/catalog/wire-names.ts'
import type { Attack, Attacker } from './attacker.ts'
import { bodyOf, paths } from './wires.ts'

/* Attacks with an upstream that is faulty or hostile, or that answers as the attacker wants. */

/** Texts that are expensive to search for secrets (B1). Terminal escapes and keys are among them too. */
const dear = ['a', 'sk-', 'a.', 'a-', 'org-', 'a@', '\u001b]0;', 'https://a.', 'sk-tri-aB3'].map((part) =>
  part.repeat(Math.ceil(60_000 / part.length)),
)

/** Sends requests to models of this behaviour, on every pair of wires in turns. */
function askAll(
  attacker: Attacker,
  behaviour: string,
  parallel: number,
  options: { text?: () => string; more?: Record<string, unknown>; isStream?: boolean; leavesAtFirst?: boolean } = {},
): Promise<void> {
  let turn = 0
  return attacker.loops(parallel, () => {
    const client = clientWireNames[turn % 3]!
    const model = clientWireNames[Math.floor(turn / 3) % 3]!
    const isStream = options.isStream ?? turn % 2 === 0
    turn++
    const body = bodyOf(client, `${behaviour}-${model}`, options.text?.() ?? 'Go on', {
      stream: isStream,
      ...options.more,
    })
    return attacker.post(paths[client], body, { leavesAtFirst: options.leavesAtFirst ?? false })
  })
}

function oneOf<T>(from: readonly T[]): T {
  return from[Math.floor(Math.random() * from.length)]!
}

const withStop = { messages: { stop_sequences: ['STOP'] }, chat: { stop: 'STOP' } }

export const attacksByModels: Attack[] = [
  {
    name: 'refusals',
    finding: 'B1',
    run: (attacker) => askAll(attacker, 'refuse', 12, { text: () => oneOf(dear) }),
  },
  {
    name: 'error-events',
    finding: 'B1',
    run: (attacker) => askAll(attacker, 'error-event', 12, { text: () => oneOf(dear), isStream: true }),
  },
  {
    name: 'error-bodies',
    finding: 'B1',
    run: (attacker) => askAll(attacker, 'error-body', 12, { text: () => oneOf(dear), isStream: false }),
  },
  {
    name: 'stops',
    finding: 'B2',
    // More streams than the gateway reads on at once (C12). Each continues for some seconds after its stop sequence.
    run: (attacker) =>
      attacker.loops(300, async (loop) => {
        const client = loop % 2 === 0 ? 'chat' : 'messages'
        const body = bodyOf(client, 'tail-responses', 'Go on', { stream: loop % 4 < 2, ...withStop[client] })
        await attacker.post(paths[client], body)
        await attacker.wait(1_000)
      }),
  },
  {
    name: 'hang-ups',
    finding: 'B9',
    run: (attacker) =>
      attacker.loops(100, async (loop) => {
        const client = clientWireNames[loop % 3]!
        const body = bodyOf(client, 'tail-responses', 'Go on', { stream: true })
        await attacker.post(paths[client], body, { leavesAtFirst: true })
        await attacker.wait(100)
      }),
  },
  {
    name: 'hang-ups-unanswered',
    finding: 'B9',
    run: (attacker) =>
      attacker.loops(100, async (loop) => {
        const client = clientWireNames[loop % 3]!
        await attacker.post(paths[client], bodyOf(client, `hang-${client}`, 'Go on'), { leaveMs: 100 })
      }),
  },
  {
    name: 'log-probabilities',
    finding: 'B5',
    run: (attacker) =>
      attacker.loops(8, (loop) =>
        attacker.post(paths.responses, bodyOf('responses', 'logprobs-responses', 'Hi', { stream: loop % 2 === 0 })),
      ),
  },
  { name: 'lies', finding: 'B18', run: (attacker) => askAll(attacker, 'lie', 12) },
  { name: 'cuts', finding: 'F-U10', run: (attacker) => askAll(attacker, 'cut', 12) },
  { name: 'no-answers', finding: 'F-U24', run: (attacker) => askAll(attacker, 'garbage', 4) },
  {
    name: 'troubles',
    finding: 'F-U21',
    // Uses the payers' own upstream account, which must not be avoided because of one client's requests.
    run: async (attacker) => {
      await Promise.all([askAll(attacker, 'trouble', 6), askAll(attacker, 'full', 6)])
    },
  },
  {
    name: 'many-stops',
    finding: 'B20',
    run(attacker) {
      const many = Array.from({ length: 100_000 }, (_, i) => `stop ${i} canary`)
      const long = Array.from({ length: 5 }, (_, i) => `${'a'.repeat(800_000)}${i}`)
      const bodies = [many, long].map((stop) => bodyOf('chat', 'long-responses', 'Hi', { stream: true, stop }))
      return attacker.loops(4, (loop) => attacker.post(paths.chat, bodies[loop % 2]!))
    },
  },
  {
    name: 'endless',
    finding: 'B10',
    run: (attacker) =>
      Promise.all(
        ['endless', 'silent'].map((behaviour) => askAll(attacker, behaviour, 6, { isStream: true })),
      ) as unknown as Promise<void>,
  },
  {
    name: 'stopped-readers',
    finding: 'B10',
    async run(attacker) {
      for (let i = 0; i < 300 && !attacker.signal.aborted; i++) {
        const [client, model] = [clientWireNames[i % 3]!, clientWireNames[Math.floor(i / 3) % 3]!]
        const socket = await attacker.open()
        socket.pause()
        const body = bodyOf(client, `endless-${model}`, 'Go on', { stream: true })
        socket.write(
          `POST ${paths[client]} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${attacker.key()}\r\n` +
            `content-length: ${body.length}\r\n\r\n${body}`,
        )
        await attacker.wait(5)
      }
      await attacker.wait(3_600_000)
    },
  },
]
