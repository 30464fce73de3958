import assert from 'node:assert/strict'
import test from 'node:test'
import type { Cooldown } from '../../src/accounts/server-store.ts'
import type { Model, Route } from '../../src/catalog/model.ts'
import { Secret, type Upstream } from '../../src/config/config.ts'
import { createPool, type Pool, type Search } from '../../src/upstream/pool.ts'
import { createPoolMemory, type PoolMemory, Wishes } from '../../src/upstream/pool-memory.ts'
import type { Target } from '../../src/upstream/target.ts'
import type { Verdict } from '../../src/upstream/verdict.ts'
import { modelOf, routeOf } from '../native/models.ts'
import { upstreamAt } from '../support/upstream.ts'

const full: Verdict = { tell: 'capacity', elsewhere: 'another', cool: 'now' }
const barred: Verdict = { tell: 'account', elsewhere: 'another', cool: 'now' }
const passing: Verdict = { tell: 'broken', elsewhere: 'another', cool: 'repeated' }

/** What every route of these tests serves, unless it says otherwise. */
const base = modelOf('chat')

type Layout = Record<string, { accounts: readonly string[]; off?: readonly string[]; keys?: string } & Partial<Route>>

/**
 * Upstreams by name with their accounts, all of which serve one model.
 * @param keyless names of accounts that have no key at the moment
 * @param keys `version` is the version of all keys. `doubts` gets what is said of a key that was refused
 */
function start(
  layout: Layout,
  memory?: PoolMemory,
  keyless: ReadonlySet<string> = new Set(),
  keys: { version: number; doubts?: boolean[] } = { version: 0 },
) {
  let nowMs = 1_000
  const upstreams = new Map<string, Upstream>()
  const routes: Route[] = []
  for (const [name, { accounts, off = [], keys = '', ...route }] of Object.entries(layout)) {
    const more = {
      name,
      accounts: accounts.map((account) => {
        return { name: account, key: new Secret(`key-${account}${keys}`), isEnabled: !off.includes(account) }
      }),
      headers: new Map([['x-of', name]]),
    }
    upstreams.set(name, upstreamAt(`http://${name}`, more))
    routes.push(routeOf(base, { upstream: name, ...route }))
  }
  const model = { ...base, routes: routes.sort((a, b) => a.priority - b.priority) }
  const known =
    memory ??
    createPoolMemory(
      () => nowMs,
      () => 0.5,
    )
  const pool = createPool(upstreams, known, ({ name }) => ({
    get value() {
      return keyless.has(name) ? undefined : 'key'
    },
    get version() {
      return keys.version
    },
    ...{ known: [], doubt: (isForKey: boolean) => void keys.doubts?.push(isForKey) },
  }))
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { pool, model, memory: known, pass }
}

function search(more: Partial<Search> = {}): Search {
  return { requestId: 'req_1', affinity: undefined, tried: [], isLast: false, ...more }
}

function ask(pool: Pool, model: Model, more: Partial<Search> = {}) {
  return pool.choose(model, search(more))
}

function nameOf(choice: { target: Target } | undefined): string | undefined {
  return choice && `${choice.target.upstream.name}/${choice.target.account?.name}`
}

/** One whole call of a conversation. @returns where it went */
function call(pool: Pool, model: Model, affinity: string, verdict?: Verdict): string {
  const choice = ask(pool, model, { affinity })!
  const stay = pool.enter(choice, { affinity }, false)
  if (verdict) stay.failed(verdict, 'a cause', undefined)
  else stay.succeeded(false)
  return nameOf(choice)!
}

const eight = { up: { accounts: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] } }

test('U1 a pool of one account gives the same target every time, and none after it was tried', () => {
  const { pool, model } = start({ sim: { accounts: ['a'] } })
  const choice = ask(pool, model)!
  assert.deepEqual([nameOf(choice), choice.why, choice.isHome], ['sim/a', 'only', true])
  assert.equal(ask(pool, model, { affinity: 'a conversation' })!.target, choice.target)
  assert.equal(ask(pool, model, { tried: [choice.target] }), undefined)
  const gone = start({ sim: { accounts: [] } })
  assert.equal(nameOf(ask(gone.pool, gone.model)), 'sim/undefined', 'an upstream that asks for no key')
  assert.equal(ask(gone.pool, { ...gone.model, routes: [routeOf(gone.model, { upstream: 'gone' })] }), undefined)
})

test('X9 U14 an account that an operator disabled stays so across any reload, until they enable it', () => {
  const both = { up: { accounts: ['a', 'b'] } }
  const { memory, model, pool } = start(both)
  const reload = (layout: Layout, entryId = model.entryId) => {
    const next = start(layout, memory)
    const entry = { ...next.model, id: entryId, entryId }
    next.pool.adopt([entry])
    const steer = (steering: 'disable' | 'enable', name: { account?: string; model?: string }) =>
      next.pool.steer(steering, { upstream: 'up', ...name }, [entry])
    return { steer, states: () => next.pool.list([entry]).map(({ account, state }) => `${account} ${state}`) }
  }
  pool.steer('disable', { upstream: 'up', account: 'b' }, [model])
  const isOff = ['a ready', 'b disabled']
  assert.deepEqual(reload({ up: { accounts: ['a', 'b'], keys: ' anew' } }).states(), isOff, 'with another key')
  assert.deepEqual(reload({ up: { accounts: ['a'] } }).states(), ['a ready'])
  assert.deepEqual(reload(both).states(), isOff, 'back again')
  const other = reload(both, 'another model')
  assert.deepEqual(other.states(), isOff, 'for a model that was not there')
  // An exception, and no more.
  other.steer('enable', { account: 'b', model: 'another model' })
  assert.deepEqual(other.states(), ['a ready', 'b ready'])
  assert.deepEqual(reload(both, 'a third').states(), isOff)
  assert.deepEqual(reload({ up: { accounts: ['a', 'b'], keys: ' 3' } }, 'another model').states(), [
    'a ready',
    'b ready',
  ])
  reload(both).steer('enable', {})
  assert.deepEqual(reload(both, 'a fourth').states(), ['a ready', 'b ready'])
  assert.deepEqual(reload(both).states(), ['a ready', 'b ready'])
})

test('P6 a conversation stays with one account, and conversations are spread over all', () => {
  const { pool, model } = start(eight)
  const shares = new Map<string, number>()
  for (let i = 0; i < 4_000; i++) {
    const affinity = `conversation ${i}`
    const first = call(pool, model, affinity)
    for (let turn = 0; turn < 3; turn++) assert.equal(call(pool, model, affinity), first)
    shares.set(first, (shares.get(first) ?? 0) + 1)
  }
  assert.equal(shares.size, 8)
  for (const share of shares.values()) assert.ok(share > 400 && share < 600, String(share))
})

test('P6 the same conversation goes to the same account in another process, whatever the order of accounts', () => {
  const one = start(eight)
  const other = start({ up: { accounts: eight.up.accounts.toReversed() } })
  for (let i = 0; i < 100; i++) {
    const affinity = `conversation ${i}`
    assert.equal(nameOf(ask(one.pool, one.model, { affinity })), nameOf(ask(other.pool, other.model, { affinity })))
  }
})

test('requests without a conversation are spread by the weight of the upstream, whatever its number of accounts', () => {
  const { pool, model } = start({
    big: { accounts: ['a', 'b', 'c'], off: ['c'], weight: 3 },
    small: { accounts: ['a'], weight: 1 },
  })
  const shares = new Map<string, number>()
  for (let i = 0; i < 8_000; i++) {
    const choice = ask(pool, model, { requestId: `req_${i}` })!
    assert.equal(choice.why, 'spread')
    shares.set(nameOf(choice)!, (shares.get(nameOf(choice)!) ?? 0) + 1)
  }
  assert.deepEqual([...shares.keys()].sort(), ['big/a', 'big/b', 'small/a'])
  const expected = { 'big/a': 3_000, 'big/b': 3_000, 'small/a': 2_000 }
  for (const [name, share] of Object.entries(expected)) {
    assert.ok(Math.abs(shares.get(name)! - share) < 200, `${name} has ${shares.get(name)}`)
  }
})

test('accounts of the first priority are asked first, the others if none of these can be', () => {
  const { pool, model } = start({
    backup: { accounts: ['a'], priority: 2 },
    first: { accounts: ['a', 'b'], priority: 1 },
  })
  for (let i = 0; i < 50; i++) assert.match(nameOf(ask(pool, model, { requestId: `req_${i}` }))!, /^first/)
  const tried: Target[] = []
  for (let choice = ask(pool, model); choice; choice = ask(pool, model, { tried })) tried.push(choice.target)
  assert.deepEqual(
    tried.map(({ upstream }) => upstream.name),
    ['first', 'first', 'backup'],
  )
})

test('U1 the last attempt goes to another priority, if there is one', () => {
  const { pool, model } = start({
    first: { accounts: ['a', 'b', 'c'], priority: 1 },
    backup: { accounts: ['a'], priority: 2 },
  })
  const tried = [ask(pool, model)!.target]
  assert.match(nameOf(ask(pool, model, { tried }))!, /^first/)
  assert.equal(nameOf(ask(pool, model, { tried, isLast: true })), 'backup/a')
  const alone = start({ first: { accounts: ['a', 'b', 'c'] } })
  const once = [ask(alone.pool, alone.model)!.target]
  assert.match(nameOf(ask(alone.pool, alone.model, { tried: once, isLast: true }))!, /^first/)
})

test('U1 401, 402, 403 and 429 may cool all of a pool; other failures at most half of it, rounded down', () => {
  for (const [verdict, open] of [
    [full, 0],
    [barred, 0],
    [passing, 3],
  ] as const) {
    const { pool, model } = start({ up: { accounts: ['a', 'b', 'c', 'd', 'e'] } })
    for (let i = 0; i < 500; i++) {
      const choice = ask(pool, model, { requestId: `req_${i}` })
      if (choice) pool.enter(choice, search(), false).failed(verdict, 'a cause', undefined)
    }
    assert.equal(pool.list([model]).filter(({ state }) => state === 'ready').length, open, verdict.tell)
  }
})

test('F-U18 only a refusal of the key itself counts against the key, and none of money or permissions', () => {
  const causes = { upstream_401: true, upstream_402: false, upstream_403: false }
  const alarms = { upstream_account_key: true, upstream_account_spent: false, upstream_account_denied: false }
  for (const [cause, isForKey] of Object.entries({ ...causes, ...alarms })) {
    const doubts: boolean[] = []
    const { pool, model } = start(eight, undefined, undefined, { version: 0, doubts })
    pool.enter(ask(pool, model)!, { affinity: undefined }, false).failed(barred, cause, undefined)
    assert.deepEqual(doubts, [isForKey], cause)
  }
})

test('U1 a single account never cools for a temporary failure', () => {
  const { pool, model } = start({ up: { accounts: ['a', 'b'], off: ['b'] } })
  for (let i = 0; i < 9; i++) pool.enter(ask(pool, model)!, search(), false).failed(passing, 'a cause', undefined)
  assert.equal(nameOf(ask(pool, model)), 'up/a')
})

test('U1 an account without a key does not count among those that can take over', () => {
  const keyless = new Set(['b'])
  const { pool, model } = start({ up: { accounts: ['a', 'b'] } }, undefined, keyless)
  for (let i = 0; i < 9; i++) pool.enter(ask(pool, model)!, search(), false).failed(passing, 'a cause', undefined)
  assert.equal(nameOf(ask(pool, model)), 'up/a')
  // It still serves the model: a request that fits no other account is not refused for good.
  assert.equal(pool.sizeOf(model), 2)
  keyless.clear()
  pool
    .enter(ask(pool, model, { tried: [pool.listTargets(model)[1]!] })!, search(), false)
    .failed(passing, 'c', undefined)
  assert.equal(nameOf(ask(pool, model)), 'up/b')
})

test('U1 U2 if all accounts cool, the error is capacity with the shortest such wait, else our account', () => {
  const { pool, model } = start({ up: { accounts: ['a', 'b', 'c'], off: ['c'] } })
  assert.deepEqual(pool.outlook(model), { tell: 'account', retryAfterSeconds: undefined })
  const first = ask(pool, model)!
  pool.enter(first, search(), false).failed(barred, 'a cause', undefined)
  assert.deepEqual(pool.outlook(model), { tell: 'account', retryAfterSeconds: undefined })
  pool.enter(ask(pool, model)!, search(), false).failed(full, 'a cause', 7)
  assert.deepEqual(pool.outlook(model), { tell: 'capacity', retryAfterSeconds: 7 })
  assert.equal(ask(pool, model), undefined)
})

test('P6 a passing failure diverts one call and keeps the binding; only repeated failure moves the conversation', () => {
  const { pool, model, pass } = start(eight)
  const home = call(pool, model, 'talk')
  call(pool, model, 'talk', full)
  const diverted = ask(pool, model, { affinity: 'talk' })!
  assert.deepEqual([diverted.why, diverted.isHome], ['diverted', false])
  const away = call(pool, model, 'talk')
  assert.notEqual(away, home)
  pass(10_000)
  assert.equal(call(pool, model, 'talk'), home, 'it comes back')
  call(pool, model, 'talk', full)
  for (let i = 0; i < 3; i++) assert.equal(call(pool, model, 'talk'), away, 'the same one stands in')
  pass(300_000)
  const moved = ask(pool, model, { affinity: 'talk' })!
  assert.deepEqual([nameOf(moved), moved.why], [away, 'bound'])
})

test('Y24 a conversation that returns to an account of a better priority is reported as moved for that, and not for a fault', () => {
  const layout = { near: { accounts: ['a', 'b'], priority: 1 }, far: { accounts: ['c', 'd'], priority: 2 } }
  const likeness = { tools: 't', preamble: 'p', opener: 'o', isSmall: false, tokens: 9 }
  for (const name of [{ affinity: 'talk' }, { likeness }]) {
    const { pool, model } = start(layout)
    pool.steer('disable', { upstream: 'near' }, [model])
    const away = ask(pool, model, name)!
    pool.enter(away, search(name), false).succeeded(false)
    assert.deepEqual([away.target.upstream.name, away.moved], ['far', undefined])
    pool.steer('enable', { upstream: 'near' }, [model])
    const back = ask(pool, model, name)!
    assert.deepEqual([back.target.upstream.name, back.why, back.moved], ['near', 'diverted', 'preferred'])
    pool.steer('disable', { upstream: 'far' }, [model])
    assert.equal(ask(pool, model, name)!.moved, 'off')
  }
})

test('Y24 an unnamed conversation that goes on after the life of its cache stays with the account that then answers', () => {
  const { pool, model, pass } = start({ up: { accounts: ['a', 'b'] } })
  const likeness = { tools: 't', preamble: 'p', opener: 'o', isSmall: false, tokens: 9 }
  const answer = (tried: Target[]) => {
    const choice = ask(pool, model, { likeness, tried })!
    pool.enter(choice, { affinity: undefined, likeness }, false).succeeded(false)
    return choice.target
  }
  const first = answer([])
  const away = answer([first])
  assert.equal(
    ask(pool, model, { likeness })!.target,
    first,
    'while its cache lives, one diverted answer moves nothing',
  )
  pass(3_600_001)
  assert.equal(answer([first]), away)
  const { target, why, isHome } = ask(pool, model, { likeness })!
  assert.deepEqual([target, why, isHome], [away, 'bound', true])
})

test('Y24 a conversation whose account has lost its key is reported as moved for that, and not for a cooldown', () => {
  const keyless = new Set<string>()
  const { pool, model } = start({ up: { accounts: ['a', 'b'] } }, undefined, keyless)
  keyless.add(call(pool, model, 'talk').slice(-1))
  const { why, moved } = ask(pool, model, { affinity: 'talk' })!
  assert.deepEqual([why, moved], ['diverted', 'off'])
})

test('Y24 the width of similar requests counts the accounts that may get them: not disabled ones or those of a lower priority', () => {
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}${at}`)
  const run = (layout: Layout, steer: (pool: Pool, model: Model) => void, preambles: readonly string[]) => {
    const { pool, model, pass } = start(layout)
    steer(pool, model)
    const used = new Map(preambles.map((preamble) => [preamble, new Set<string>()]))
    for (let at = 0; at < 400; at++) {
      pass(1_000)
      const preamble = preambles[at % preambles.length]!
      const likeness = { tools: `t${preamble}`, preamble, opener: `o${at}`, isSmall: false, tokens: 1_000 }
      const choice = ask(pool, model, { likeness })!
      assert.equal(choice.why, choice.target.upstream.name === 'other' ? 'diverted' : 'alike')
      if (at >= 100) used.get(preamble)!.add(nameOf(choice)!)
    }
    return [...used.values()].map(({ size }) => size)
  }
  const half = { up: { accounts: names('on', 8) }, other: { accounts: names('off', 8) } }
  const disable = (pool: Pool, model: Model) => void pool.steer('disable', { upstream: 'other' }, [model])
  const far = { up: { accounts: names('near', 2), priority: 1 }, other: { accounts: names('far', 6), priority: 2 } }
  const disableNear = (pool: Pool, model: Model) => void pool.steer('disable', { upstream: 'up' }, [model])
  for (const one of names('p', 20)) assert.deepEqual(run(half, disable, [one]), [8])
  for (const one of names('p', 10))
    assert.deepEqual(
      run(far, () => {}, [one, `${one} other`, `${one} third`]),
      [1, 1, 1],
    )
  for (const one of names('p', 10)) assert.deepEqual(run(far, disableNear, [one]), [6])
})

test('U13 sealed items of a conversation belong to its home account, until something was sealed elsewhere', () => {
  const { pool, model, pass } = start(eight)
  const isHome = () => ask(pool, model, { affinity: 'talk' })!.isHome
  assert.equal(isHome(), true, 'of which nothing is known')
  call(pool, model, 'talk')
  assert.equal(isHome(), true)
  call(pool, model, 'talk', full)
  assert.equal(isHome(), false)
  call(pool, model, 'talk')
  pass(10_000)
  assert.equal(isHome(), false, 'back home, with the history of both')
})

test('U13 an account that was already disabled or cooling counts as the home of unknown seals', () => {
  const on = start(eight)
  const home = ask(on.pool, on.model, { affinity: 'talk' })!
  const off = start({ up: { ...eight.up, off: [home.target.account!.name] } })
  const choice = ask(off.pool, off.model, { affinity: 'talk' })!
  assert.deepEqual([choice.why, choice.isHome], ['diverted', false])
  off.pool.enter(choice, { affinity: 'talk' }, false).succeeded(false)
  assert.equal(ask(off.pool, off.model, { affinity: 'talk' })!.isHome, true, 'it is at home there from now on')
})

test('U1 a healthy backup takes all requests that the first upstream fails; one that fails too soon cools', () => {
  const layout = { up: { accounts: ['a', 'b'] }, backup: { accounts: ['c', 'd'], priority: 2 } }
  const granted = (isBackupWell: boolean) => {
    const { pool, model } = start(layout)
    let retries = 0
    for (let i = 0; i < 100; i++) {
      const tried = [ask(pool, model)!.target]
      const choice = ask(pool, model, { tried, isLast: true })!
      assert.match(nameOf(choice)!, /^backup/)
      if (!pool.mayRetry(choice.target)) continue
      retries++
      const stay = pool.enter(choice, search(), true)
      if (isBackupWell) stay.succeeded(false)
      else stay.left()
    }
    return retries
  }
  assert.deepEqual([granted(true), granted(false)], [100, 10])
})

test('U14 health, budgets and conversations survive a reload, except those of an account with another key', () => {
  const before = start(eight)
  const home = call(before.pool, before.model, 'talk')
  for (let i = 0; i < 8; i++) call(before.pool, before.model, `talk ${i}`, full)
  const cooling = before.pool.list([before.model]).filter(({ state }) => state === 'cooling')
  assert.ok(cooling.length > 0)
  const after = start(eight, before.memory)
  after.pool.adopt([after.model])
  assert.deepEqual(after.pool.list([after.model]), before.pool.list([before.model]))
  if (!cooling.some(({ account }) => home.endsWith(`/${account}`)))
    assert.equal(call(after.pool, after.model, 'talk'), home)
  const rekeyed = start({ up: { ...eight.up, keys: '-new' } }, before.memory)
  rekeyed.pool.adopt([rekeyed.model])
  assert.ok(rekeyed.pool.list([rekeyed.model]).every(({ state }) => state === 'ready'))
})

test('U14 an account that a reload removed counts as new when it returns', () => {
  const layout = (...accounts: string[]) => ({ up: { accounts } })
  const { pool, model, memory } = start(layout('a', 'b'))
  for (let i = 0; pool.list([model]).some(({ state }) => state !== 'cooling'); i++) call(pool, model, `talk ${i}`, full)
  const less = start(layout('b'), memory)
  less.pool.adopt([less.model])
  const more = start(layout('a', 'b'), memory)
  more.pool.adopt([more.model])
  const states = more.pool.list([more.model]).map(({ account, state }) => [account, state])
  assert.deepEqual(Object.fromEntries(states), { a: 'ready', b: 'cooling' })
})

test('commands that enable accounts that are not disabled do not crowd out other commands', () => {
  const wishes = new Wishes()
  wishes.say(true, { upstream: 'a' })
  for (let i = 0; i < 10_000; i++) wishes.say(false, { upstream: `b${i}` })
  assert.equal(wishes.isDisabled({ upstream: 'a', account: 'x', model: 'm' }), true)
  wishes.say(false, { upstream: 'a', account: 'x' })
  assert.equal(wishes.isDisabled({ upstream: 'a', account: 'x', model: 'm' }), false)
  assert.equal(wishes.isDisabled({ upstream: 'a', account: 'y', model: 'm' }), true)
})

test('a route has its own name for the model, its own quirks and its own headers', () => {
  const { pool, model } = start({
    up: { accounts: ['a'] },
    azure: {
      accounts: ['a'],
      priority: 2,
      headers: new Map([
        ['x-of', 'route'],
        ['x-more', '1'],
      ]),
      serving: { ...base, upstreamModel: 'my-deployment' },
    },
  })
  const first = ask(pool, model)!.target
  assert.deepEqual([first.model, first.headers], [model, ['x-of', 'up']])
  const second = ask(pool, model, { tried: [first] })!.target
  assert.deepEqual([second.model.upstreamModel, second.model.profile], ['my-deployment', model.profile])
  assert.deepEqual(second.headers, ['x-of', 'route', 'x-more', '1'])
  const stay = pool.enter({ target: second, why: 'spread', isHome: true }, search(), true)
  assert.equal(stay.failed(full, 'a cause', undefined), true)
  assert.equal(pool.list([model])[1]?.state, 'cooling')
  assert.equal(stay.failed(full, 'a cause', undefined), false, 'a failure is reported once')
})

test('P6 accounts never share a conversation: the key is scoped before it is bound, and models have their own', () => {
  const { pool, model } = start(eight)
  const other = { ...model, id: 'n', entryId: 'n' }
  const places = new Set<string>()
  for (let i = 0; i < 20; i++) {
    places.add(`${nameOf(ask(pool, model, { affinity: `${i}` }))} ${nameOf(ask(pool, other, { affinity: `${i}` }))}`)
  }
  assert.ok([...places].some((pair) => new Set(pair.split(' ')).size === 2))
})

/** Two servers over one store, each with a pool of its own. */
function startTwo(layout: Layout, keys?: { version: number }) {
  let nowMs = 1_000
  const hearing: ((cooldown: Cooldown) => void)[] = []
  const told: Cooldown[] = []
  const rigs = [0, 1].map((number) => {
    const memory = createPoolMemory(
      () => nowMs,
      () => 0.5,
    )
    memory.share({
      cool(cooldown) {
        told.push(cooldown)
        // All hear of it, also who told it.
        for (const hear of hearing) hear(cooldown)
      },
      onCooled: (hear) => void hearing.push(hear),
      lift: () => {},
      steer: () => {},
      onLifted: () => {},
    })
    return { number, ...start(layout, memory, undefined, keys) }
  })
  const fail = ({ pool, model }: (typeof rigs)[number], account: string, verdict: Verdict, times = 1) => {
    for (let i = 0; i < times; i++) {
      const target = pool.listTargets(model).find((target) => target.account?.name === account)!
      pool
        .enter({ target, why: 'spread', isHome: true }, { affinity: undefined }, false)
        .failed(verdict, 'a cause', undefined)
    }
  }
  const statesOf = ({ pool, model }: (typeof rigs)[number]) => pool.list([model]).map(({ state }) => state)
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { one: rigs[0]!, two: rigs[1]!, told, fail, statesOf, pass }
}

test('U1 X7: an account that cools on one server cools as long on the others, also those that had not asked for it', () => {
  const { one, two, told, fail, statesOf, pass } = startTwo(eight)
  fail(one, 'b', full)
  assert.deepEqual(
    told.map(({ forMs, cause, tell, cool }) => [forMs, cause, tell, cool]),
    [[10_000, 'a cause', 'capacity', 'now']],
  )
  pass(4_000)
  // The second has looked at none of its accounts until now.
  assert.equal(statesOf(two)[1], 'cooling')
  assert.deepEqual(two.pool.list([two.model])[1]!.waitMs, 6_000)
  fail(two, 'c', barred)
  assert.deepEqual(statesOf(one).slice(0, 4), ['ready', 'cooling', 'cooling', 'ready'])
  pass(6_000)
  assert.deepEqual([statesOf(one)[1], statesOf(two)[1], told.length], ['trial', 'trial', 2])
})

test('U1 X7: a cooldown that a server heard of before its first request holds for that request too', () => {
  const { one, two, fail, statesOf, pass } = startTwo({ up: { accounts: ['a', 'b'] } })
  fail(one, 'a', full)
  const asked = Array.from({ length: 8 }, (_, at) => nameOf(ask(two.pool, two.model, { requestId: `req_${at}` })))
  assert.deepEqual([...new Set(asked)], ['up/b'])
  assert.deepEqual(statesOf(two), ['cooling', 'ready'])
  pass(10_000)
  assert.deepEqual(statesOf(two), ['trial', 'ready'])
})

test('U1 X7: a new key ends a cooldown of the old key that a server heard of before its first request', () => {
  const keys = { version: 1 }
  const { one, two, fail, statesOf } = startTwo({ up: { accounts: ['a'] } }, keys)
  fail(one, 'a', barred)
  assert.deepEqual([statesOf(two), nameOf(ask(two.pool, two.model))], [['cooling'], undefined])
  const other = startTwo({ up: { accounts: ['a'] } }, keys)
  other.fail(other.one, 'a', barred)
  assert.deepEqual(other.statesOf(other.two), ['cooling'])
  keys.version = 2
  assert.equal(nameOf(ask(other.two.pool, other.two.model)), 'up/a', 'asked for nothing before')
  assert.equal(nameOf(ask(two.pool, two.model)), 'up/a')
})

test('U1 X7: the longest wait holds, whichever server has it; a server’s own report that returns changes nothing', () => {
  const { one, two, fail, pass } = startTwo(eight)
  const waits = () => [one, two].map(({ pool, model }) => pool.list([model])[0]!.waitMs)
  fail(two, 'a', barred)
  assert.deepEqual(waits(), [60_000, 60_000])
  pass(60_000)
  fail(one, 'a', full)
  // Its second in a row lasts longer than the first of the other: that one was for another cause, and counts for it alone.
  assert.deepEqual(waits(), [10_000, 10_000])
})

test('U1 X7: temporary failures cool at most half of a pool, also if each server has found another half', () => {
  const { one, two, fail, statesOf } = startTwo({ up: { accounts: ['a', 'b'] } })
  statesOf(two)
  fail(one, 'a', passing, 3)
  assert.deepEqual(
    [statesOf(one), statesOf(two)],
    [
      ['cooling', 'ready'],
      ['cooling', 'ready'],
    ],
  )
  fail(two, 'b', passing, 3)
  assert.deepEqual(
    [statesOf(one), statesOf(two)],
    [
      ['cooling', 'ready'],
      ['cooling', 'ready'],
    ],
  )
  fail(two, 'b', full)
  assert.deepEqual(statesOf(one), ['cooling', 'cooling'])
})

test('U1 X7: a server keeps cooling the half of a pool that it found failing before it heard of the other half', () => {
  const early = startTwo({ up: { accounts: ['a', 'b'] } })
  // The second found b while the news of a was on its way.
  early.statesOf(early.two)
  const memory = createPoolMemory(() => 0)
  const heard: ((cooldown: Cooldown) => void)[] = []
  memory.share({
    cool: () => {},
    onCooled: (hear) => void heard.push(hear),
    lift: () => {},
    steer: () => {},
    onLifted: () => {},
  })
  const rig = start({ up: { accounts: ['a', 'b'] } }, memory)
  const target = rig.pool.listTargets(rig.model)[1]!
  for (let i = 0; i < 3; i++)
    rig.pool
      .enter({ target, why: 'spread', isHome: true }, { affinity: undefined }, false)
      .failed(passing, 'a cause', undefined)
  early.fail(early.one, 'a', passing, 3)
  for (const hear of heard) hear(early.told[0]!)
  assert.deepEqual(
    rig.pool.list([rig.model]).map(({ state }) => state),
    ['ready', 'cooling'],
  )
})

test('Y18 if all accounts of a model are reserved for others, a request without a conversation key has no target', () => {
  const account = (name: string) => ({
    ...{ name, key: new Secret(`key-${name}`), isEnabled: true },
    isolation: new Set(['vip']),
  })
  const sim = upstreamAt('http://sim', { name: 'sim', accounts: [account('a'), account('b')] })
  const model = { ...base, routes: [routeOf(base, { upstream: 'sim' })] }
  const pool = createPool(
    new Map([['sim', sim]]),
    createPoolMemory(() => 0),
  )
  // A chain gives each of its models the likeness of the request, whatever the number of accounts.
  const likeness = { tools: 't', preamble: 'p', opener: 'o', isSmall: false, tokens: 1_000 }
  for (const id of ['vip', 'other']) {
    const choice = pool.choose(model, search({ likeness, customer: { id, name: id } }))
    assert.equal(choice !== undefined, id === 'vip')
  }
})
