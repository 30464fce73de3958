/*
 * Measures the CPU that sign-in costs a request, beside the same request to a gateway without sign-in. There are two rows:
 *
 *   key      the gateway with sign-in gets a key, as the other one does
 *   token    the gateway with sign-in gets the access token of a session
 *
 * Each run starts the gateways anew, because two processes of one program differ by about one percent. In a run, the warm
 * gateways take turns with short measurements, and each is divided by that of the gateway without sign-in beside it.
 *
 *     node bin/node.mjs bench/sign-in.bench.ts [--runs 5] [--turns 30] [--requests 2000] [--warm 40000] [--row <name>]
 */
import type { TestGateway } from '../test/support/gateway.ts'
import { openTestSession } from '../test/support/sessions.ts'
import { heat, median } from './measure.ts'
import { readOptions, refuse } from './options.ts'
import { startBench, type Variant } from './servers.ts'
import { type Taking, take } from './take.ts'
import { type Workload, workloads } from './workloads.ts'

const usage = `node bin/node.mjs bench/sign-in.bench.ts [options]

  --runs N        how often the gateways are started (5)
  --turns N       how often each gateway has its turn in a run (30)
  --requests N    of one turn (2000)
  --warm N        the least number of requests before the turns (40000)
  --row NAME      the request ('1 KB, messages, 32 conn.')`

const options = readOptions(usage, {
  runs: { type: 'string', default: '5' },
  turns: { type: 'string', default: '30' },
  requests: { type: 'string', default: '2000' },
  warm: { type: 'string', default: '40000' },
  row: { type: 'string', default: '1 KB, messages, 32 conn.' },
})
const [runs, turns, requests] = [Number(options.runs), Number(options.turns), Number(options.requests)]
const row = workloads.find(({ name }) => name === options.row)
if (!row) refuse(`no row is called '${options.row}': ${workloads.map(({ name }) => name).join('; ')}`, usage)
const workload: Workload = { ...row, warmRequests: Number(options.warm) }

const rules = [{ groups: ['dev'], account: 'bench' }]
const config = { own_pages: true, sign_in: { issuer: 'http://127.0.0.1:9', client_id: 'triwire', rules } }
const variants: Variant[] = [
  { name: 'key', config },
  { name: 'token', config, fill: async (store) => [await signIn(store)] },
]
const resamples = 2_000

/** For each row: of each run, the quotients of its turns. */
const found = new Map<string, number[][]>(variants.map(({ name }) => [name, []]))
const others: number[] = []
for (let run = 0; run < runs; run++) await measureRun()
console.log('| request with | sign-in on ÷ off | 95 % | runs |\n|---|---|---|---|')
for (const [name, quotients] of found) {
  const [low, high] = boundsOf(quotients)
  const each = quotients.map((of) => median(of).toFixed(3)).join(', ')
  console.log(
    `| ${name} | ${median(quotients.flat()).toFixed(3)} | ${low.toFixed(3)} to ${high.toFixed(3)} | ${each} |`,
  )
}
console.log(
  `${options.row}. Other programs used ${percent(median(others))} of the machine, at most ${percent(Math.max(...others))}.`,
)

async function measureRun(): Promise<void> {
  const bench = await startBench({ variants })
  const tell = (trouble: string) => console.error(trouble)
  const taking: Taking = { bench, workload, tell, isStrict: true, answered: new Map(), others: [] }
  try {
    const servers = bench.servers.filter(({ name }) => name === 'gateway' || found.has(name))
    for (const server of servers) await heat(taking, server, undefined)
    const costs = new Map<string, number[]>(servers.map(({ name }) => [name, []]))
    for (let turn = 0; turn < turns; turn++)
      for (const server of turn % 2 === 0 ? servers : servers.toReversed())
        costs.get(server.name)!.push((await take(taking, server, requests)).usAll)
    const off = costs.get('gateway')!
    for (const [name, quotients] of found) quotients.push(costs.get(name)!.map((cost, turn) => cost / off[turn]!))
    const shown = servers.map(({ name }) => `${name} ${median(costs.get(name)!).toFixed(1)}`)
    console.error(`µs a request: ${shown.join(', ')}`)
    others.push(...taking.others)
  } finally {
    await bench.close()
  }
}

/** Signs a person in before the gateway starts. @returns the access token */
async function signIn(storePath: string): Promise<string> {
  const gateway = { storePath, nowMs: Date.now } as TestGateway
  return (await openTestSession(gateway, { account: 'bench' })).access
}

/** The bounds of 95 % of the median, by a bootstrap that draws runs, and turns of each drawn run. */
function boundsOf(quotients: readonly (readonly number[])[]): [low: number, high: number] {
  const drawn = Array.from({ length: resamples }, () => median(draw(quotients).flatMap(draw))).sort((a, b) => a - b)
  return [drawn[Math.floor(resamples * 0.025)]!, drawn[Math.ceil(resamples * 0.975) - 1]!]
}

/** Draws as many as there are, with replacement. */
function draw<T>(list: readonly T[]): T[] {
  return list.map(() => list[Math.floor(Math.random() * list.length)]!)
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
