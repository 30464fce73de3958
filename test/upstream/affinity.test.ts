import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import test from 'node:test'
import { Secret, type Upstream } from '../../src/config/config.ts'
import { createPool } from '../../src/upstream/pool.ts'
import { createPoolMemory } from '../../src/upstream/pool-memory.ts'
import { judge } from '../../src/upstream/verdict.ts'
import { isNightly } from '../support/runs.ts'
import { modelOf } from '../translation/support/exchange.ts'

/*
 * Y24: what the choice of an account does to prompt caches of requests that name no conversation. Two hours of traffic go through
 * the pool itself. Each account has a prompt cache of its own, which keeps what it has read for five minutes.
 */

/** A request as a list of the parts of its prompt: tools, instructions, the first turn of its user, and all turns after that. */
type Asked = { atMs: number; customer: string; parts: readonly (readonly [id: string, characters: number])[] }

/** The characters of tools, instructions and first turn of six agents, as they were recorded. */
const agents = [
  [18_100, 4_300, 500],
  [6_200, 1_300, 400],
  [26_000, 21_500, 6_800],
  [21_300, 4_100, 8_200],
  [3_100, 2_400, 300],
  [38_900, 27_000, 6_500],
] as const

const hourMs = 3_600_000

/** Makes numbers in [0, 1) that are the same for the same seed. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** Traffic of people with coding agents (A), of one busy assistant (B), of quiet apps (C), and of agents that write the time into their instructions (D). */
function createTraffic(random: () => number): Asked[] {
  const all: Asked[] = []
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1))
  const after = (meanMs: number) => -Math.log(1 - random()) * meanMs
  const add = (atMs: number, customer: string, parts: Asked['parts']) => all.push({ atMs, customer, parts: [...parts] })
  const endMs = 2 * hourMs
  function* starts(meanMs: number) {
    for (let atMs = after(meanMs); atMs < endMs; atMs += after(meanMs)) yield atMs
  }
  for (let person = 0; person < 40; person++) {
    const [customer, kind, folder] = [`c${person % 4}`, person % 6, `A${person}`]
    const [tools, system, first] = agents[kind]!
    const preamble = [
      [`A${customer}.tools${kind}`, tools],
      [`${folder}.system`, system],
    ] as const
    for (const startMs of starts(900_000)) {
      const task = `${folder}.${startMs}`
      let parts: Asked['parts'] = [...preamble, [`${task}.first`, first + between(0, 2_000)]]
      let atMs = startMs
      for (let turn = 0, turns = between(4, 50); turn < turns && atMs < endMs; turn++) {
        add(atMs, customer, parts)
        parts = [...parts, [`${task}.a${turn}`, between(80, 800)], [`${task}.r${turn}`, between(100, 6_000)]]
        atMs += random() < 0.06 ? after(150_000) : 2_000 + after(9_000)
        // The agent sums up its conversation, which opens anew.
        if (parts.reduce((sum, [, size]) => sum + size, 0) > 150_000)
          parts = [...preamble, [`${task}.summary${turn}`, 6_000]]
      }
    }
  }
  for (const startMs of starts(2_000)) {
    let parts: Asked['parts'] = [
      ['B.tools', 4_000],
      ['B.system', 8_000],
      [`B${startMs}`, between(50, 400)],
    ]
    let atMs = startMs
    for (let turn = 0, turns = between(1, 5); turn < turns; turn++) {
      add(atMs, 'c20', parts)
      parts = [...parts, [`B${startMs}a${turn}`, between(300, 1_500)], [`B${startMs}u${turn}`, between(50, 400)]]
      atMs += 5_000 + after(40_000)
    }
  }
  for (let app = 0; app < 20; app++)
    for (const startMs of starts(100_000))
      add(startMs, `c${30 + app}`, [
        [`C${app}.tools`, 5_000],
        [`C${app}.system`, 15_000],
        [`C${app}.${startMs}`, between(100, 3_000)],
      ])
  for (let person = 0; person < 5; person++)
    for (const startMs of starts(900_000)) {
      let rest: Asked['parts'] = [[`D${person}.${startMs}`, 500]]
      let atMs = startMs
      for (let turn = 0; turn < 20 && atMs < endMs; turn++) {
        add(atMs, `c${60 + person}`, [[`D${person}.tools`, 8_000], [`D.time${atMs}`, 2_000], ...rest])
        rest = [...rest, [`D${person}.${startMs}.${turn}`, 1_500]]
        atMs += 3_000 + after(10_000)
      }
    }
  return all.sort((one, other) => one.atMs - other.atMs)
}

type Shares = { all: number; kinds: Record<string, number>; busiest: number }

const cacheMs = 300_000
const down = { fault: { kind: 'broken', text: '', status: 503 }, cause: 'upstream_503' } as const

/** Plays traffic over accounts. @returns the shares of the input that were cached, and the busiest account by the mean */
function play(name: string, traffic: readonly Asked[], size: number, isRough: boolean, random: () => number): Shares {
  let nowMs = 0
  const model = modelOf('chat')
  const route = { upstream: 'up', priority: 1, weight: 1, headers: new Map(), serving: model }
  const pooled = { ...model, routes: [route] }
  const upstreams = new Map([['up', upstreamOf(size)]])
  const pools = Array.from({ length: isRough ? 3 : 1 }, () =>
    createPool(
      upstreams,
      createPoolMemory(() => nowMs, random),
    ),
  )
  const caches = new Map<string, Map<string, number>>()
  const loads = new Map<string, number>()
  const sums: Record<string, { read: number; input: number }> = {}
  for (const { atMs, customer, parts } of traffic) {
    nowMs = atMs
    const pool = pools[Math.floor(random() * pools.length)]!
    const failing = isRough && atMs % 600_000 < 60_000 ? `a${Math.floor(atMs / 600_000) % size}` : undefined
    let digest = `${name} ${customer}`
    const borders = parts.map(([id]) => (digest = hash('sha1', `${digest} ${id}`, 'base64')))
    const characters = parts.reduce((sum, [, count]) => sum + count, 0)
    const [tools, preamble, opener] = borders as [string, string, string]
    const likeness = { tools, preamble, opener, isSmall: false, tokens: characters / 4 }
    const search = {
      ...{ requestId: `${atMs}`, affinity: undefined, likeness, customer: { id: customer, name: customer } },
      ...{ tried: [] as never[], isLast: false },
    }
    let account: string | undefined
    for (let attempt = 0; account === undefined; attempt++) {
      assert.ok(attempt < 3, 'an account is found')
      const choice = pool.choose(pooled, search)!
      const stay = pool.enter(choice, search, attempt > 0)
      const { name: answering } = choice.target.account!
      if (answering === failing) {
        stay.failed(judge(down, pooled), down.cause, undefined)
        search.tried.push(choice.target as never)
        continue
      }
      stay.firstByte()
      stay.succeeded(false)
      account = answering
    }
    const cache = caches.get(account) ?? new Map<string, number>()
    caches.set(account, cache)
    let [read, seen] = [0, 0]
    for (const [at, border] of borders.entries()) {
      seen += parts[at]![1]
      if (atMs - (cache.get(border) ?? Number.NEGATIVE_INFINITY) <= cacheMs) read = seen
      cache.set(border, atMs)
    }
    loads.set(account, (loads.get(account) ?? 0) + characters)
    for (const kind of ['all', parts[0]![0][0]!]) {
      const sum = sums[kind] ?? { read: 0, input: 0 }
      sums[kind] = sum
      sum.read += read
      sum.input += characters
    }
  }
  const kinds = Object.fromEntries(Object.entries(sums).map(([kind, { read, input }]) => [kind, read / input]))
  const all = [...loads.values()]
  return { all: kinds['all']!, kinds, busiest: Math.max(...all) / (all.reduce((sum, one) => sum + one, 0) / size) }
}

function upstreamOf(size: number): Upstream {
  const accounts = Array.from({ length: size }, (_, at) => ({
    name: `a${at}`,
    key: new Secret(`k${at}`),
    isEnabled: true,
  }))
  return {
    name: 'up',
    baseUrl: 'http://up.internal',
    accounts,
    headers: new Map(),
    endpoints: { chat: ['/', '/'] },
  } as unknown as Upstream
}

const seeds = isNightly ? [1, 2, 3, 4, 5] : [4]

test('Y24 over eight accounts, three replicas and one failing account, unnamed requests find 98 % of the cache hits of one account, with no load over 1.6 times the mean', (t) => {
  const found: Record<string, number[]> = { all: [], A: [], B: [], C: [] }
  const busiest: number[] = []
  for (const seed of seeds) {
    const traffic = createTraffic(createRandom(seed))
    const one = play(`${seed}`, traffic, 1, false, createRandom(seed))
    const eight = play(`${seed}`, traffic, 8, true, createRandom(seed))
    t.diagnostic(
      `seed ${seed}: ${Object.keys(one.kinds)
        .map((kind) => `${kind} ${((100 * eight.kinds[kind]!) / one.kinds[kind]!).toFixed(1)}`)
        .join(', ')}; busiest ${eight.busiest.toFixed(2)}`,
    )
    for (const [kind, shares] of Object.entries(found)) shares.push((100 * eight.kinds[kind]!) / one.kinds[kind]!)
    busiest.push(eight.busiest)
  }
  for (const [kind, shares] of Object.entries(found)) {
    assert.ok(meanOf(shares) >= 98, `${kind}: ${shares}`)
    assert.ok(Math.min(...shares) >= 97.5, `${kind}: ${shares}`)
  }
  assert.ok(Math.max(...busiest) <= 1.6, `the busiest accounts have ${busiest} times the mean`)
})

function meanOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length
}
