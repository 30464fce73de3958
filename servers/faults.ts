import assert from 'node:assert/strict'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import type { Ask } from './client.ts'
import { modelIds, silences } from './gateway.ts'
import { sayings } from './model/tiny-model.ts'
import type { ModelServer } from './model-server.ts'
import { openTrial, type Side } from './trial.ts'

/** A fault of the server, of its load or of a client, which is tried on each pair of wires. */
export type ServerFault = {
  name: string
  /** Whether it is tried on a server. If absent, it is tried on all. */
  isOn?(server: ModelServer): boolean
  run(on: { server: ModelServer; side: Side; clientWire: ClientWire; modelWire: ClientWire }): Promise<void>
}

const greeting: Ask = { turns: [{ by: 'user', text: 'Good morning' }] }
/** A request whose answer takes three seconds or more. */
const endless: Ask = { turns: [{ by: 'user', text: '@loop please' }], cap: 2000 }
type Pair = Parameters<ServerFault['run']>[0]

const open = ({ side, clientWire, modelWire }: Pair, isStreamed: boolean, what: string) =>
  openTrial(side, clientWire, modelWire, isStreamed, what)

async function greets(pair: Pair, what: string): Promise<void> {
  for (const isStreamed of [false, true]) {
    assert.equal((await open(pair, isStreamed, what).ask(greeting)).text.trim(), sayings.greeting)
  }
}

/** Starts a stream, and waits for its first text. @returns `told`, which rejects if the answer is complete */
async function begin(pair: Pair, what: string): Promise<{ told: Promise<void> }> {
  const { promise: hasText, resolve } = Promise.withResolvers<void>()
  const told = open(pair, true, what).cut({ ...endless, onText: resolve })
  // The caller awaits it later, when the server is gone.
  told.catch(() => {})
  await Promise.race([hasText, told])
  return { told }
}

/** Kills a server during a stream, and starts it again. @param words in the error of a request in between */
async function killed(pair: Pair, server: ModelServer, words: RegExp): Promise<void> {
  const begun = await begin(pair, 'killed')
  await server.stop('SIGKILL')
  try {
    await begun.told
    const { status, text } = await open(pair, false, 'away').refusal(greeting)
    assert.equal(status, 502)
    assert.match(text, words)
  } finally {
    await server.start()
  }
  await greets(pair, 'started again')
}

export const serverFaults: readonly ServerFault[] = [
  {
    name: "the server refuses the gateway's key",
    async run(pair) {
      const { status, text } = await open(pair, false, 'wrong key').refusal(greeting, modelIds.locked(pair.modelWire))
      assert.equal(status, 503)
      assert.doesNotMatch(text, /api.?key|unauthori[sz]ed/i)
    },
  },
  {
    name: 'more requests than the server has slots',
    async run(pair) {
      const asks = Array.from({ length: 10 }, (_, n) => open(pair, n % 2 === 0, 'full queue').ask(greeting))
      for (const { text } of await Promise.all(asks)) assert.equal(text.trim(), sayings.greeting)
    },
  },
  {
    name: 'the client disconnects',
    async run(pair) {
      const leaving = new AbortController()
      await open(pair, true, 'left').cut({ ...endless, signal: leaving.signal, onText: () => leaving.abort() })
      await greets(pair, 'after a client left')
    },
  },
  {
    name: 'the server is killed in a stream, is down for a while, and starts again',
    run: (pair) => killed(pair, pair.server, /connection/),
  },
  {
    name: 'the server behind LiteLLM is killed in a stream, is down for a while, and starts again',
    isOn: ({ behind }) => behind !== undefined,
    run: (pair) => killed(pair, pair.server.behind!, /model/),
  },
  {
    name: 'the server freezes',
    async run(pair) {
      const begun = await begin(pair, 'frozen')
      pair.server.signal('SIGSTOP')
      try {
        const startedMs = performance.now()
        const { status } = await open(pair, false, 'frozen').refusal(greeting)
        await begun.told
        assert.equal(status, 502)
        assert.ok(performance.now() - startedMs < 3 * silences.short, 'the gateway waited too long')
      } finally {
        pair.server.signal('SIGCONT')
      }
      await greets(pair, 'thawed')
    },
  },
  {
    name: 'the server restarts while no request runs',
    async run(pair) {
      await greets(pair, 'before a restart')
      await pair.server.stop('SIGTERM')
      await pair.server.start()
      await greets(pair, 'behind a restart')
    },
  },
]
