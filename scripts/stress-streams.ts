import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { parseScript } from '../src/simulator/script.ts'
import { startTestGateway, testModel } from '../test/support/gateway.ts'

// node bin/node.mjs scripts/stress-streams.ts [--streams 20000] [--at-once 1,6,24] [--tokens 660]
//
// Runs streams of 55 KB or more of a chat model for responses clients, with each number of concurrent streams.
// Meanwhile threads keep all processors busy. The model writes whole events, pieces of events, or begins a moment after
// the head. The exit code is 1 if a stream is cut or too short, a bug is logged, or a debit is missing or doubled.

const { values: options } = parseArgs({
  options: {
    streams: { type: 'string', default: '20000' },
    'at-once': { type: 'string', default: '1,6,24' },
    tokens: { type: 'string', default: '660' },
  },
})
const atOnce = options['at-once'].split(',').map(Number)
const each = Number(options.streams)
const bytesMin = 55_000
const tickMs = 250
const manners = { whole: '', pieces: 'split: 1447', late: 'first_delay_ms: 1' }
const models = Object.keys(manners)

const gateway = await startTestGateway({
  models: models.map((id) => testModel(id, 'chat', { upstream_model: id })),
  config: { limits: { requests_per_minute: 1e9 } },
  credit: '1000000',
})
for (const [id, manner] of Object.entries(manners))
  gateway.simulator.script(id, parseScript(`tokens: ${options.tokens}\n${manner}`))

const spin =
  'for (;;) { const until = Date.now() + 20; while (Date.now() < until) {} Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5) }'
const load = Array.from({ length: availableParallelism() }, () => new Worker(spin, { eval: true }))
// Moves the clock of the test gateway, which stands still otherwise, so that deadlines are checked during the streams.
const ticker = setInterval(() => gateway.advance(tickMs), tickMs)
const problems: string[] = []
try {
  console.log('| at once | streams | ended as they should | KB each, shortest | s |')
  console.log('|---|---|---|---|---|')
  for (const connections of atOnce) await run(connections)
  problems.push(...(await lookBack(each * atOnce.length)))
} finally {
  clearInterval(ticker)
  for (const worker of load) await worker.terminate()
  await gateway.close()
}
for (const problem of problems.slice(0, 20)) console.log(problem)
if (problems.length > 0) process.exitCode = 1

async function run(connections: number): Promise<void> {
  const started = performance.now()
  let asked = 0
  let good = 0
  let shortest = Number.POSITIVE_INFINITY
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (asked < each) {
        const model = models[asked++ % models.length]!
        const text = await ask(model)
        shortest = Math.min(shortest, text.length)
        const end = /\nevent: (response\.\w+)\ndata: .*\n\n$/.exec(text)?.[1]
        if (end === 'response.completed' && text.length >= bytesMin) good++
        else problems.push(`${connections} at once, ${model}: ${text.length} bytes, end ${end}: …${text.slice(-300)}`)
        gateway.simulator.requests.length = 0
      }
    }),
  )
  const seconds = ((performance.now() - started) / 1_000).toFixed(0)
  console.log(`| ${connections} | ${each} | ${good} | ${(shortest / 1_000).toFixed(1)} | ${seconds} |`)
}

async function ask(model: string): Promise<string> {
  try {
    const response = await gateway.post('/v1/responses', { model, stream: true, input: 'Go on.' })
    return await response.text()
  } catch (error) {
    return `broken: ${(error as Error).message}`
  }
}

/** Checks the log and the ledger after all streams. */
async function lookBack(asked: number): Promise<string[]> {
  const bad = (await gateway.logLines()).filter(
    ({ event, status }) => event === 'bug' || (status !== undefined && status !== 200),
  )
  const debits = [...gateway.store.eachEntry()].filter(({ kind }) => kind === 'debit').length
  return [
    ...bad.map((line) => `log: ${JSON.stringify(line)}`),
    ...(debits === asked ? [] : [`${debits} debits for ${asked} streams`]),
  ]
}
