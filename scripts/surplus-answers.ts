import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { startTestGateway, testModel } from '../test/support/gateway.ts'
import { runHonest } from './surplus/honest.ts'
import { drawTrials, type TrialResult } from './surplus/trial.ts'

// node bin/node.mjs scripts/surplus-answers.ts [--trials 1000] [--honest 1000000] [--seed 1] [--at-once 12]
//
// Tries upstreams that send one response too many (ruling Y14, decision 59). The surplus response is JSON, a stream or
// a load balancer's 408. It is sent 0 to 30 ms after the right one. The clients send one or four concurrent requests. A
// tenth of the upstreams take 3 s, the others 20 ms. All responses contain a nonce. The gateway uses this thread, and
// upstreams and clients another one. Then correct upstreams respond after 0.1 ms, through src/upstream alone.
//
// The exit code is 1 if a surplus response was not reported, or a correct one was. It is also 1 if more than one
// request got a foreign response in over 1 % of the trials, or more than two in any.

const { values: options } = parseArgs({
  options: {
    trials: { type: 'string', default: '1000' },
    honest: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '12' },
  },
})
const trials = Number(options.trials)
const atOnce = Number(options['at-once'])
console.log(`seed ${options.seed}`)
if (trials > 0) await runTrials()
if (Number(options.honest) > 0) {
  const { isGood, says } = await runHonest(Number(options.honest))
  console.log(says)
  if (!isGood) process.exitCode = 1
}

async function runTrials(): Promise<void> {
  const started = performance.now()
  const world = new Worker(new URL('surplus/world.ts', import.meta.url), { workerData: { places: atOnce } })
  const [ports] = (await once(world, 'message')) as [number[]]
  const gateway = await startTestGateway({
    models: ports.map((_, i) => testModel(`m${i}`, 'chat', { upstream: `u${i}` })),
    upstream: () => ({
      upstreams: Object.fromEntries(
        ports.map((port, i) => [
          `u${i}`,
          { base_url: `http://127.0.0.1:${port}`, accounts: [{ name: 'a', key: 'upstream-key-1' }] },
        ]),
      ),
    }),
    config: { limits: { requests_per_minute: 1e9 } },
    credit: '1000000',
  })
  world.postMessage({
    url: gateway.url,
    adminUrl: gateway.adminUrl,
    key: gateway.key,
    trials: drawTrials(trials, Number(options.seed)),
  })
  const [results] = (await once(world, 'message')) as [TrialResult[]]
  await world.terminate()
  await gateway.close()
  report(results, (performance.now() - started) / 1_000)
}

function report(results: readonly TrialResult[], seconds: number): void {
  const rows: [string, (result: TrialResult) => boolean][] = [
    ...(['json', 'stream', '408'] as const).map((kind): (typeof rows)[number] => [
      kind,
      ({ trial }) => trial.kind === kind,
    ]),
    ...[0, 1, 3, 10, 30].map((ms): (typeof rows)[number] => [`${ms} ms late`, ({ trial }) => trial.lateMs === ms]),
    ...[1, 4].map((count): (typeof rows)[number] => [`${count} at a time`, ({ trial }) => trial.lanes === count]),
    ...[20, 3_000].map((ms): (typeof rows)[number] => [`upstream of ${ms} ms`, ({ trial }) => trial.takesMs === ms]),
    ['all', () => true],
  ]
  console.log('| | trials | requests | nobody hurt | 1 | 2 | more | silent | events |')
  console.log('|---|---|---|---|---|---|---|---|---|')
  for (const [name, isIn] of rows) {
    const some = results.filter(isIn)
    const hurt = [0, 1, 2].map((count) => some.filter((result) => result.hurt === count).length)
    const more = some.filter((result) => result.hurt > 2).length
    const silent = some.filter(({ events }) => events === 0).length
    const requests = some.reduce((sum, result) => sum + result.requests, 0)
    const events = some.reduce((sum, result) => sum + result.events, 0)
    console.log(`| ${name} | ${some.length} | ${requests} | ${hurt.join(' | ')} | ${more} | ${silent} | ${events} |`)
  }
  console.log(`${seconds.toFixed(0)} s`)
  const several = results.filter(({ hurt }) => hurt > 1)
  const bad = results.filter(({ hurt, events, broken }) => hurt > 2 || events === 0 || broken.length > 0)
  for (const result of bad.slice(0, 20)) console.log(JSON.stringify(result))
  if (bad.length > 0 || several.length > Math.floor(results.length / 100)) process.exitCode = 1
}
