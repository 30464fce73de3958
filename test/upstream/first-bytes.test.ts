import assert from 'node:assert/strict'
import test from 'node:test'
import type { Route } from '../../src/catalog/model.ts'
import { Secret } from '../../src/config/config.ts'
import type { Likeness } from '../../src/inference/likeness.ts'
import { createRandom } from '../../src/store/seeded-random.ts'
import type { AnswerForm } from '../../src/upstream/first-bytes.ts'
import { createPool, type PoolRow, type Stay } from '../../src/upstream/pool.ts'
import { createPoolMemory } from '../../src/upstream/pool-memory.ts'
import type { Verdict } from '../../src/upstream/verdict.ts'
import { modelOf, routeOf } from '../native/models.ts'
import { upstreamAt } from '../support/upstream.ts'

/*
 * Ruling Y25: new requests avoid an upstream account that hangs, and unnamed ones a slow account. The kind: streams and JSON,
 * named and unnamed, clients that wait and clients that leave, from the first request on and after a good hour.
 */

const full: Verdict = { tell: 'capacity', elsewhere: 'another', cool: 'now' }

/** The time to the first byte at an account at a moment, in ms; Infinity: it hangs. */
type Behaviour = (account: string, nowMs: number, form: AnswerForm) => number

type Ask = { form?: AnswerForm; affinity?: string; likeness?: Likeness; leaveMs?: number }

/** Accounts of one model, whose requests are played on a clock of the test. */
function startPool(accounts: readonly string[], behaviour: Behaviour, routes: Partial<Route>[] = [{}]) {
  let nowMs = 0
  let asked = 0
  const base = modelOf('chat')
  const upstreams = new Map(
    routes.map((route, index) => {
      const upstream = route.upstream ?? 'sim'
      const names = routes.length === 1 ? accounts : [accounts[index]!]
      const keyed = names.map((name) => ({ name, key: new Secret(`key-${name}`), isEnabled: true }))
      return [upstream, upstreamAt(`http://${upstream}`, { name: upstream, accounts: keyed })]
    }),
  )
  const model = { ...base, routes: routes.map((route) => routeOf(base, route)) }
  const memory = createPoolMemory(
    () => nowMs,
    () => 0.5,
  )
  const pool = createPool(upstreams, memory)
  const due: { atMs: number; act: () => void }[] = []
  const at = (atMs: number, act: () => void) => {
    if (atMs !== Number.POSITIVE_INFINITY) due.push({ atMs, act })
    due.sort((a, b) => a.atMs - b.atMs)
  }
  return {
    pool,
    model,
    memory,
    pass(ms: number) {
      const untilMs = nowMs + ms
      while (due.length > 0 && due[0]!.atMs <= untilMs) {
        const { atMs, act } = due.shift()!
        nowMs = atMs
        act()
      }
      nowMs = untilMs
    },
    /** Sends one request. @returns the account, and whether it hung; undefined if no account could be asked */
    ask({ form = 'stream', affinity, likeness, leaveMs = Number.POSITIVE_INFINITY }: Ask = {}) {
      const search = { requestId: `req_${++asked}`, affinity, likeness, tried: [], isLast: false, form }
      const choice = pool.choose(model, search)
      if (!choice) return undefined
      const stay = pool.enter(choice, search, false)
      const account = choice.target.account!.name
      const tookMs = behaviour(account, nowMs, form)
      if (tookMs < leaveMs) at(nowMs + tookMs, () => answer(stay))
      else at(nowMs + leaveMs, () => stay.left())
      return { account, hangs: tookMs === Number.POSITIVE_INFINITY, stay, why: choice.why }
    },
    row: (account: string): PoolRow => pool.list([model]).find((row) => row.account === account)!,
  }
}

function answer(stay: Stay): void {
  stay.firstByte()
  stay.succeeded(false)
}

/** Conversations that begin alike, and how: all with one preamble, forty preambles, or too small for a cache. */
const likenesses: (readonly [name: string, likenessOf: (index: number) => Likeness])[] = [
  ['one preamble', () => likenessOf('one')],
  ['forty preambles', (index) => likenessOf(`${index % 40}`)],
  ['small', () => likenessOf('small', true)],
]

let openers = 0
function likenessOf(preamble: string, isSmall = false): Likeness {
  return { tools: 'tools', preamble, opener: `opener ${++openers}`, isSmall, tokens: 4_000 }
}

const eight = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
const hangs = Number.POSITIVE_INFINITY
const never = Number.POSITIVE_INFINITY

const crowds: {
  name: string
  form: (index: number) => AnswerForm
  affinity?: (index: number) => string
  leaveMs: number
}[] = [
  { name: 'streams', form: () => 'stream', leaveMs: 20_000 },
  { name: 'streams whose clients never leave', form: () => 'stream', leaveMs: never },
  { name: 'JSON', form: () => 'json', leaveMs: 90_000 },
  { name: 'both', form: (index) => (index % 2 === 0 ? 'json' : 'stream'), leaveMs: 90_000 },
  { name: 'conversations', form: () => 'stream', affinity: (index) => `talk ${index % 200}`, leaveMs: 20_000 },
]
for (const { name, form, affinity, leaveMs } of crowds)
  for (const fromMs of [0, 120_000])
    test(`Y25 two of eight accounts hang: at most 2 % of requests hang after the first minute (${name}, from ${fromMs / 1000} s on)`, () => {
      const isBad = (account: string) => account === 'c' || account === 'f'
      const { ask, pass, row } = startPool(eight, (account, nowMs) => (isBad(account) && nowMs >= fromMs ? hangs : 50))
      let index = 0
      const send = (count: number) => {
        let hanging = 0
        for (let i = 0; i < count; i++) {
          const asked = ask({ form: form(++index), ...(affinity && { affinity: affinity(index) }), leaveMs })
          if (asked!.hangs) hanging++
          pass(12.5)
        }
        return hanging
      }
      send((fromMs + 61_000) / 12.5)
      const share = send(900) / 900
      assert.ok(share <= 0.02, `${(100 * share).toFixed(1)} %`)
      assert.deepEqual([row('c').state, row('c').cause, row('a').state], ['trial', 'upstream_hangs', 'ready'])
    })

test('Y25 hanging JSON requests put an account on trial for JSON alone, while its streams are answered', () => {
  const { ask, pass, row } = startPool(['a', 'b'], (account, _, form) =>
    account === 'b' && form === 'json' ? hangs : 50,
  )
  for (let i = 0; i < 1_500; i++) {
    ask({ form: 'json' })
    ask({ form: 'stream' })
    pass(50)
  }
  assert.equal(row('b').state, 'trial')
  const asked = Array.from({ length: 200 }, (_, i) => ask({ form: i % 2 ? 'json' : 'stream' })!)
  assert.ok(asked.filter(({ hangs }) => hangs).length <= 1)
  assert.ok(asked.filter(({ account }, i) => account === 'b' && i % 2 === 0).length > 20, 'streams go on')
})

test('Y25 an account with two requests waiting over 10 s is on trial: one tries it, another after 30 s, until a first byte arrives', () => {
  let isHanging = true
  const { ask, pass, row, memory } = startPool(['a', 'b'], (account) => (account === 'b' && isHanging ? hangs : 20))
  const goTo = (account: string) => {
    for (let i = 0; i < 100; i++) {
      const asked = ask()!
      if (asked.account === account) return asked
    }
    return undefined
  }
  goTo('b')
  pass(9_000)
  goTo('b')
  pass(1_001)
  assert.equal(row('b').state, 'ready', 'one request is none')
  pass(9_000)
  assert.deepEqual([row('b').state, row('b').waitMs], ['trial', 0])
  assert.deepEqual([...memory.cooldowns.get('sim')!], [['upstream_hangs', 1]])
  const first = goTo('b')!
  assert.ok(first, 'one request tries it')
  assert.equal(row('b').waitMs, 30_000)
  assert.equal(goTo('b'), undefined, 'the others go elsewhere')
  pass(29_999)
  assert.equal(goTo('b'), undefined)
  pass(1)
  isHanging = false
  assert.ok(goTo('b'), 'another may try')
  pass(20)
  assert.equal(row('b').state, 'ready', 'though the others still wait')
  assert.ok(goTo('b') && goTo('b'))
})

/** @returns an account that two requests wait for, sent at the same time, and the time until it was on trial, in ms */
function untilTrial(form: AnswerForm, usualMs: number): number {
  const { ask, pass, row } = startPool(['a', 'b'], (account, nowMs) =>
    account === 'b' && nowMs >= 1e6 ? hangs : usualMs,
  )
  for (let i = 0; i < 100; i++) {
    ask({ form })
    pass(1e4)
  }
  while (ask({ form })!.account !== 'b') pass(0)
  while (ask({ form })!.account !== 'b') pass(0)
  let ms = 0
  for (; ms < 1e6 && row('b').state === 'ready'; ms += 1_000) pass(1_000)
  return ms
}

test('Y25 a request hangs after four times the pool’s usual, but not before 10 s for streams and 60 s for JSON', () => {
  assert.equal(untilTrial('stream', 50), 11_000)
  assert.equal(untilTrial('stream', 4_000), 17_000)
  assert.equal(untilTrial('json', 50), 61_000)
  assert.equal(untilTrial('json', 30_000), 121_000)
})

test('Y25 the last account neither on trial nor cooling never goes on trial; if all others cool, one on trial is asked', () => {
  const all = startPool(['a', 'b', 'c'], () => hangs)
  const use = () => {
    const used = new Map<string, number>()
    for (let i = 0; i < 60; i++) {
      const asked = all.ask()!
      used.set(asked.account, (used.get(asked.account) ?? 0) + 1)
      all.pass(1_000)
    }
    return used
  }
  use()
  const states = () => ['a', 'b', 'c'].map((name) => all.row(name).state).sort()
  assert.deepEqual(states(), ['ready', 'trial', 'trial'])
  assert.ok(Math.max(...use().values()) > 50, 'the last one serves')
  const last = ['a', 'b', 'c'].find((name) => all.row(name).state === 'ready')!
  let asked = all.ask()!
  while (asked.account !== last) asked = all.ask()!
  asked.stay.failed(full, 'upstream_429', 100)
  assert.equal(all.row(last).state, 'cooling')
  for (let i = 0; i < 20; i++) assert.notEqual(all.ask()!.account, last, 'a trial refuses nobody')
})

test('Y25 a primary that hangs is skipped for a backup of a lower priority', () => {
  const routes = [{ upstream: 'near' }, { upstream: 'far', priority: 2 }]
  const { ask, pass } = startPool(['a', 'b'], (account) => (account === 'a' ? hangs : 50), routes)
  for (let i = 0; i < 120; i++) {
    ask()
    pass(500)
  }
  const used = Array.from({ length: 50 }, () => ask()!.account)
  assert.equal(used.filter((account) => account === 'a').length <= 1, true)
})

test('Y25 a refusal of a faulty request ends a trial; a failure, or a client that leaves, does not', () => {
  const rig = startPool(['a', 'b'], (account) => (account === 'b' ? hangs : 50))
  const untilB = () => {
    for (let i = 0; i < 300; i++) {
      const asked = rig.ask()!
      if (asked.account === 'b') return asked.stay
      rig.pass(100)
    }
    throw new Error('b was not asked')
  }
  for (let i = 0; i < 150; i++) {
    rig.ask()
    rig.pass(100)
  }
  rig.pass(31_000)
  assert.equal(rig.row('b').state, 'trial')
  untilB().left()
  assert.deepEqual([rig.row('b').state, rig.row('b').waitMs! > 0], ['trial', true])
  rig.pass(31_000)
  untilB().failed({ tell: 'broken', elsewhere: 'another', cool: 'repeated' }, 'upstream_500', undefined)
  assert.equal(rig.row('b').state, 'trial')
  rig.pool.steer('retry', { upstream: 'sim' }, [rig.model])
  assert.equal(rig.row('b').waitMs, 0, 'an operator lets the next one try')
  untilB().refused()
  assert.equal(rig.row('b').state, 'ready')
})

test('Y25 clients that leave before their requests hang are no hanging requests later', () => {
  for (const leaveMs of [9_000, 11_000]) {
    const rig = startPool(['a', 'b'], (account) => (account === 'b' ? hangs : 50))
    let left = 0
    while (left < 3) if (rig.ask({ leaveMs })!.account === 'b') left++
    rig.pass(60_000)
    rig.ask()
    assert.equal(rig.row('b').state, leaveMs > 10_000 ? 'trial' : 'ready', `${leaveMs}`)
  }
})

test('Y25 unnamed requests skip accounts whose usual is over twice the pool’s, until they are quick again', () => {
  let slowMs = 2_000
  const { ask, pass } = startPool(eight, (account) => (account < 'c' ? slowMs : 50))
  const slowShare = (affinity?: (index: number) => string) => {
    let slow = 0
    for (let i = 0; i < 800; i++) {
      if (ask({ ...(affinity && { affinity: affinity(i) }) })!.account < 'c') slow++
      pass(12.5)
    }
    return slow / 800
  }
  slowShare()
  assert.equal(slowShare(), 0)
  assert.ok(slowShare((index) => `new ${index}`) > 0.15, 'named conversations go where they hash to')
  slowMs = 60
  pass(300_000)
  slowShare()
  assert.ok(slowShare() > 0.15)
})

test('48.1 if two of eight accounts are slow, 90 % of new unnamed conversations begin within 1.3 times the ideal after one minute', () => {
  const jitter = createRandom(7)
  for (const [name, likenessOf] of likenesses) {
    // Times to first byte around 50 ms, as without slow accounts.
    const quickMs = () => 25 - 25 * Math.log(1 - jitter())
    const p90Of = (slowMs: (() => number) | undefined) => {
      const tookMs: number[] = []
      const { ask, pass } = startPool(eight, (account) => {
        const ms = slowMs && (account === 'c' || account === 'f') ? slowMs() : quickMs()
        tookMs.push(ms)
        return ms
      })
      // Named conversations go to slow accounts all the time.
      const send = (count: number) => {
        const own: number[] = []
        for (let i = 0; i < count; i++) {
          if (i % 4 === 0) ask({ affinity: `talk ${i % 400}` })
          else {
            ask({ likeness: likenessOf(i) })
            own.push(tookMs.at(-1)!)
          }
          pass(12.5)
        }
        return own
      }
      send(61_000 / 12.5)
      const measured = send(2_400).sort((a, b) => a - b)
      return measured[Math.floor(measured.length * 0.9)]!
    }
    const [ideal, found] = [p90Of(undefined), p90Of(() => 2_000 + 500 * jitter())]
    assert.ok(found <= 1.3 * ideal, `${name}: ${found} ms for ${ideal} ms`)
  }
})

test('Y25 slow accounts are asked if their priority has no other account', () => {
  const routes = [{ upstream: 'near' }, { upstream: 'far', priority: 2 }]
  const { ask, pass, pool, model } = startPool(['a', 'b'], (account) => (account === 'a' ? 900 : 50), routes)
  const [near, far] = pool.listTargets(model)
  for (let i = 0; i < 60; i++) {
    const stay = pool.enter(
      { target: i % 2 ? near! : far!, why: 'spread', isHome: true },
      { affinity: undefined, form: 'json' },
      false,
    )
    pass(i % 2 ? 900 : 50)
    answer(stay)
  }
  pass(1_000)
  for (let i = 0; i < 50; i++) assert.equal(ask({ form: 'json' })!.account, 'a')
})

test('Y25 a bound conversation leaves a slow account after two slow first bytes in a row, and stays with the new one', () => {
  let slowMs = 50
  const { ask, pass } = startPool(['a', 'b', 'c'], (account) => (account === 'b' ? slowMs : 50))
  const talk = (count: number) =>
    Array.from({ length: count }, () => {
      const { account, why } = ask({ affinity: name })!
      pass(5_000)
      return `${account} ${why}`
    })
  let name = ''
  for (let i = 0; !name.startsWith('talk') || ask({ affinity: name })!.account !== 'b'; i++) name = `talk ${i}`
  pass(60_000)
  for (let i = 0; i < 200; i++) {
    ask()
    pass(100)
  }
  assert.deepEqual(talk(2), ['b bound', 'b bound'])
  slowMs = 2_000
  // The account is slow by its own usual first.
  for (let i = 0; i < 200; i++) {
    ask({ affinity: `other ${i}` })
    pass(100)
  }
  const [first, second, third, ...rest] = talk(6)
  assert.deepEqual([first, second], ['b bound', 'b bound'])
  assert.match(third!, /^[ac] diverted$/)
  for (const turn of rest) assert.equal(turn, third!.replace('diverted', 'bound'))
})

test('Y25 a trial of streams does not affect JSON: hanging JSON at another account is detected, and that account cools', () => {
  let isStreaming = true
  const { ask, pass, row, pool, model } = startPool(['a', 'b'], (account, _, form) => {
    if (form === 'stream') return account === 'a' ? hangs : 50
    return account === 'b' ? hangs : 50
  })
  for (let i = 0; i < 400; i++) {
    ask({ form: isStreaming ? 'stream' : 'json', leaveMs: 90_000 })
    isStreaming = i < 40
    pass(1_000)
  }
  const asked = Array.from({ length: 100 }, () => {
    pass(1_000)
    return ask({ form: 'json', leaveMs: 90_000 })!
  })
  assert.ok(asked.filter((one) => one.hangs).length <= 8, `${asked.filter((one) => one.hangs).length} of 100 hang`)
  assert.equal(row('b').state, 'trial')
  const search = { requestId: 'r', affinity: undefined, tried: [], isLast: false, form: 'json' as const }
  // A request that has tried the only account in use is not kept from one on trial.
  const first = pool.choose(model, search)!
  assert.ok(pool.choose(model, { ...search, tried: [first.target] }), 'the retry has an account')
})

test('Y18 accounts reserved for other customers take no share of the weight of their upstream', () => {
  const { pool, model, ask } = startPool(['a', 'b'], () => 1, [{ upstream: 'x' }, { upstream: 'y' }])
  const places = pool.listTargets(model)
  assert.equal(places.length, 2)
  const upstreams = new Map(
    places.map(({ upstream }) => {
      const reserved = [1, 2, 3].map((n) => ({
        name: `vip${n}`,
        key: new Secret(`k${n}`),
        isEnabled: true,
        isolation: new Set(['vip']),
      }))
      return [
        upstream.name,
        upstream.name === 'x' ? { ...upstream, accounts: [...upstream.accounts, ...reserved] } : upstream,
      ]
    }),
  )
  const shared = createPool(
    upstreams,
    createPoolMemory(
      () => 0,
      () => 0.5,
    ),
  )
  let atX = 0
  for (let i = 0; i < 4_000; i++) {
    const customer = { id: 'acct_1', name: 'other' }
    const search = { requestId: `r${i}`, affinity: undefined, tried: [], isLast: false, customer }
    if (shared.choose(model, search)!.target.upstream.name === 'x') atX++
  }
  assert.ok(atX > 1_800 && atX < 2_200, `${atX} of 4000`)
  assert.ok(ask())
})
