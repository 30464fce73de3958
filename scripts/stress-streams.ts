import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { parseScript } from '../src/simulator/script.ts'
import { startTestGateway, testModel } from '../test/support/gateway.ts'

// node bin/node.mjs scripts/stress-streams.ts [--streams 20000] [--at-once 1,6,24] [--tokens 12000]
//
// Long streams of a chat model for responses clients, while threads keep all processors busy: each must come to its
// terminal event. One that closes without it, or a line of the log that tells of a bug, makes the exit code 1.

const { values: options } = parseArgs({
  options: {
    streams: { type: 'string', default: '20000' },
    'at-once': { type: 'string', default: '1,6,24' },
    tokens: { type: 'string', default: '12000' },
  },
})
const atOnce = options['at-once'].split(',').map(Number)
const each = Math.ceil(Number(options.streams) / atOnce.length)

const gateway = await startTestGateway({
  models: [testModel('long', 'chat')],
  config: { limits: { requests_per_minute: 1e9 } },
  credit: '1000000',
})
gateway.simulator.script('long', parseScript(`tokens: ${options.tokens}`))
const spin =
  'for (;;) { const until = Date.now() + 20; while (Date.now() < until) {} Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5) }'
const load = Array.from({ length: availableParallelism() }, () => new Worker(spin, { eval: true }))
try {
  for (const connections of atOnce) await run(connections)
} finally {
  for (const worker of load) await worker.terminate()
  await gateway.close()
}

async function run(connections: number): Promise<void> {
  const started = performance.now()
  let asked = 0
  let bytes = 0
  const ends = new Map<string, number>()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (asked < each) {
        asked++
        const text = await ask()
        bytes += text.length
        const end = /event: (response\.(?:completed|incomplete|failed))\n.*\n\n$/.exec(text)?.[1] ?? 'NO END'
        ends.set(end, (ends.get(end) ?? 0) + 1)
        if (end !== 'response.completed') process.exitCode = 1
        gateway.simulator.requests.length = 0
        if (asked % 1_000 === 0) console.log(`  ${asked} of ${each}`)
      }
    }),
  )
  const seconds = ((performance.now() - started) / 1_000).toFixed(0)
  const told = [...ends].map(([end, times]) => `${end} ${times}`).join(', ')
  console.log(`${connections} at once: ${told}; ${Math.round(bytes / each / 1_024)} KB each, ${seconds} s`)
}

async function ask(): Promise<string> {
  const response = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify({ model: 'long', stream: true, input: 'Go on.' }),
  })
  try {
    return await response.text()
  } catch (error) {
    return `broken: ${(error as Error).message}`
  }
}
