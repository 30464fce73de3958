import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import test from 'node:test'
import type { OtherReplica, ReplicaDoor } from '../../src/accounts/server-store.ts'
import type { AdminOperations } from '../../src/admin/listener.ts'
import { Events } from '../../src/live/events.ts'
import { OtherReplicas } from '../../src/live/other-replicas.ts'
import { createDoorToken, createReplicaDoor, doorPath } from '../../src/live/replica-door.ts'
import { answerForAll, watchReplicas } from '../../src/live/replica-view.ts'
import type { RequestRow } from '../../src/operations/live-shapes.ts'
import { startBareAdmin } from '../operations/bare-admin.ts'
import { atEnd } from '../support/at-end.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/waiting.ts'

/* One server answers operators for all servers of its store that it can reach, and names the others (ruling X9). */

const sealKey = Buffer.alloc(32, 7)
const tokenOf = (key: string) => createDoorToken(sealKey, key)
const loopback = 'this machine'

type Own = Partial<
  Pick<AdminOperations, 'explain' | 'listRequests' | 'findRequests' | 'readUnbilledSinceMs' | 'readHolds'>
>

const idle: Required<Own> = {
  explain: async () => 'unknown',
  listRequests: async () => [],
  findRequests: async () => new Set(),
  readUnbilledSinceMs: async () => 0,
  readHolds: async () => new Map(),
}

let eventsMs = 0

function createEvents(): Events {
  const events = new Events({
    clockMs: () => eventsMs,
    nowMs: Date.now,
    listUpstreams: async () => [],
    tellAccounts: () => [],
    countStreams: () => 2,
    reportBug: assert.ifError,
  })
  atEnd(() => events.close())
  return events
}

/** Another server: its door on a real listener. @param siblings the servers that share its port */
async function startOther(name: string, own: Own, siblings: readonly OtherReplica[] = []) {
  const key = `${name}Key`
  const events = createEvents()
  const { others } = createOthers(siblings)
  const running = { ...idle, ...own } as AdminOperations
  const answer = createReplicaDoor({ running, watch: events.watch, key, tokenOf, pass: others.pass })
  const origin = await startBareAdmin({ door: { path: doorPath, answer } })
  return { ...registered(name, { key, local: { origin, loopback } }), events, origin }
}

function registered(name: string, door: ReplicaDoor | undefined): OtherReplica & { door: ReplicaDoor } {
  return { name, door: door as ReplicaDoor }
}

function createOthers(list: readonly OtherReplica[], timeout = () => new AbortController().signal) {
  let nowMs = 0
  const replicas = { name: 'own', openDoor() {}, listOthers: async () => list }
  const others = new OtherReplicas({ replicas, loopback, key: 'ownKey', tokenOf, clockMs: () => nowMs, timeout })
  return {
    others,
    advance(ms: number) {
      nowMs += ms
    },
  }
}

function view(own: Own, list: readonly OtherReplica[], timeout?: () => AbortSignal) {
  const { others, advance } = createOthers(list, timeout)
  const operations = answerForAll({ ...idle, ...own } as AdminOperations, others, () => assert.fail('nobody watches'))
  return { operations, advance }
}

const row = (id: string, ms: number) => ({ request_id: id, at: new Date(ms).toISOString() }) as RequestRow

test('X9 requests, holds and facts about ids are those of all servers', async () => {
  const two = await startOther('two', {
    listRequests: async (_, limit) => [row('d', 4), row('b', 2)].slice(0, limit),
    findRequests: async (ids) => new Set(ids.filter((id) => 'bd'.includes(id))),
    readHolds: async () =>
      new Map([
        ['acc_1', 3n],
        ['acc_2', 10n ** 17n],
      ]),
  })
  const three = await startOther('three', { listRequests: async () => [row('a', 1)] })
  const { operations } = view(
    {
      listRequests: async () => [row('c', 3)],
      findRequests: async (ids) => new Set(ids.filter((id) => id === 'c')),
      readHolds: async () => new Map([['acc_1', 4n]]),
    },
    [two, three],
  )
  const listed = async (limit: number) => (await operations.listRequests({}, limit)).map(({ request_id }) => request_id)
  assert.deepEqual(await listed(9), ['d', 'c', 'b', 'a'])
  assert.deepEqual(await listed(2), ['d', 'c'])
  assert.deepEqual([...(await operations.findRequests(['c', 'b', 'x']))].sort(), ['b', 'c'])
  assert.deepEqual(
    [...(await operations.readHolds())],
    [
      ['acc_1', 7n],
      ['acc_2', 10n ** 17n],
    ],
  )
  assert.deepEqual(operations.listUnreached(), [])
})

test('X9 requests without a bill are listed since the server started that was started last', async () => {
  const [two, three] = [
    await startOther('two', { readUnbilledSinceMs: async () => 9 }),
    await startOther('three', { readUnbilledSinceMs: async () => 5 }),
  ]
  for (const [own, expected] of [
    [7, 9],
    [11, 11],
  ] as const) {
    const { operations } = view({ readUnbilledSinceMs: async () => own }, [two, three])
    assert.equal(await operations.readUnbilledSinceMs(), expected)
  }
})

test('X9 a request is explained by the server that served it, otherwise by one that can read its debit', async () => {
  const memory = { request_id: 'req_1', attempts: [] } as never
  const ledger = { request_id: 'req_1', attempts: null } as never
  const rows = [
    [memory, memory, memory],
    [ledger, memory, memory],
    ['unknown', ledger, ledger],
    ['silent', memory, memory],
    ['silent', 'unknown', 'silent'],
    ['unknown', 'silent', 'silent'],
    ['unknown', 'unknown', 'unknown'],
  ] as const
  for (const [own, other, expected] of rows) {
    const two = await startOther('two', { explain: async () => other })
    const { operations } = view({ explain: async () => own }, [two])
    assert.deepEqual(await operations.explain('req_1'), expected)
  }
})

test('X9 an unreachable server is named, delays callers once, and is asked again later', async () => {
  const held: ServerResponse[] = []
  const late: AbortController[] = []
  const hangingServer = createServer((_, response) => {
    held.push(response)
    // Four servers of the list are asked at once, this one as the last but one.
    late.at(-2)!.abort()
  })
  const hanging = `http://127.0.0.1:${await listen(hangingServer)}`
  const good = await startOther('good', { readHolds: async () => new Map([['acc_1', 1n]]) })
  const list = [
    good,
    registered('gone', { key: 'goneKey', url: 'http://127.0.0.1:9' }),
    registered('hanging', { key: 'hangingKey', url: hanging }),
    registered('elsewhere', { key: 'elsewhereKey', local: { origin: good.origin, loopback: 'another machine' } }),
    registered('old', undefined),
    // This server, under the number that it had before a failover.
    registered('own', { key: 'ownKey', url: 'http://127.0.0.1:9' }),
    // A listener with another seal key answers none of our servers.
    registered('foreign', { key: 'foreignKey', url: good.origin }),
  ]
  const { operations, advance } = view({}, list, () => {
    const controller = new AbortController()
    late.push(controller)
    return controller.signal
  })
  const read = async () => Object.fromEntries(await operations.readHolds())
  assert.deepEqual(await read(), { acc_1: 1n })
  const all = ['gone', 'hanging', 'elsewhere', 'old', 'foreign']
  assert.deepEqual(operations.listUnreached(), all)
  assert.equal(held.length, 1)
  assert.deepEqual(await read(), { acc_1: 1n })
  assert.equal(held.length, 1, 'it was not asked again at once')
  advance(5_000)
  assert.deepEqual(operations.listUnreached(), ['elsewhere', 'old'])
  assert.deepEqual(await read(), { acc_1: 1n })
  assert.equal(held.length, 2)
  assert.deepEqual(operations.listUnreached(), all)
})

test('X9 a silent store changes nothing: the servers that it last listed are asked', async () => {
  const two = await startOther('two', { readHolds: async () => new Map([['acc_1', 1n]]) })
  const lists = [async () => [two], async () => Promise.reject(new Error('the store is silent'))]
  const replicas = { name: 'own', openDoor() {}, listOthers: () => lists.shift()!() }
  const others = new OtherReplicas({ replicas, loopback, key: 'ownKey', tokenOf, clockMs: () => 0 })
  for (let n = 0; n < 2; n++) assert.deepEqual(await others.ask('readHolds', []), [new Map([['acc_1', 1n]])])
})

test('X9 a question that reaches a worker by the shared port is passed to the intended worker, and to no other machine', async () => {
  const meant = await startOther('meant', { readHolds: async () => new Map([['acc_1', 5n]]) })
  const away = registered('away', { key: 'awayKey', url: meant.origin })
  const first = await startOther('first', {}, [meant, away])
  const ask = async (key: string) => {
    const headers = { authorization: `Bearer ${tokenOf(key)}` }
    const response = await fetch(`${first.origin}${doorPath}${key}/readHolds`, { method: 'POST', headers, body: '[]' })
    return [response.status, await response.text()]
  }
  const [status, text] = await ask(meant.door.key)
  assert.deepEqual([status, text], [200, '{"$map":[["acc_1",{"$nanos":"5"}]]}'])
  assert.deepEqual(await ask('awayKey'), [404, ''])
  assert.deepEqual(await ask('unknownKey'), [404, ''])
  // From another machine the same is one question.
  const remote = registered('meant', { key: meant.door.key, url: first.origin })
  const { operations } = view({}, [remote])
  assert.deepEqual([...(await operations.readHolds())], [['acc_1', 5n]])
})

test('X9 the internal listener accepts only the token of a key, and only existing methods', async () => {
  const two = await startOther('two', {})
  const ask = async (token: string | undefined, path: string) => {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return (await fetch(`${two.origin}${doorPath}${path}`, { method: 'POST', headers, body: '[]' })).status
  }
  assert.equal(await ask(tokenOf('twoKey'), 'twoKey/readHolds'), 200)
  for (const token of [undefined, 'twoKey', tokenOf('oneKey'), createDoorToken(Buffer.alloc(32), 'twoKey')])
    for (const path of ['twoKey/readHolds', 'twoKey/watch', 'twoKey', ''])
      assert.equal(await ask(token, path), 404, `${token} ${path}`)
  for (const name of ['', 'steer', 'readStatus', 'constructor'])
    assert.equal(await ask(tokenOf('twoKey'), `twoKey/${name}`), 404, name)
})

test('X9 live events are those of all servers, and a tick has their sums and names missing servers', async () => {
  const own = createEvents()
  const [two, three] = [await startOther('two', {}), await startOther('three', {})]
  const missing = [
    registered('old', undefined),
    registered('gone', { key: 'goneKey', url: 'http://127.0.0.1:9' }),
    registered('foreign', { key: 'foreignKey', url: two.origin }),
  ]
  const { others } = createOthers([two, three, ...missing])
  const events = watchReplicas({
    ...{ own, others, clockMs: () => eventsMs, nowMs: Date.now },
    ...{ listUpstreams: async () => [], readHolds: async () => new Map(), reportBug: assert.ifError },
  })
  let text = ''
  const reading = (async () => {
    for await (const piece of events.watch(undefined)) text += piece
  })()
  const all = [own, two.events, three.events]
  const turn = () => {
    eventsMs += 1_000
    for (const one of [...all, events]) one.tick()
  }
  await until(() => all.every(({ isOpen }) => isOpen), 'all are read')
  const sums = { requests: 1, errors: 0, nanos: 2n, input: 3, output: 4 }
  for (const [n, one] of all.entries()) {
    one.tell({ event: 'request.finished', data: { request_id: `req_${n}` } })
    // Each server tells of upstreams what this one knows as well.
    one.tell({ event: 'upstream.state', data: { upstream: `up_${n}` } })
    one.addSums(sums)
  }
  const ticks = () => [...text.matchAll(/event: tick\ndata: (.+)/g)].map(([, data]) => JSON.parse(data!))
  const requests = () => ticks().reduce((sum, tick) => sum + tick.requests, 0)
  await until(() => {
    turn()
    return requests() === 3 && ticks().at(-1).streams === 6
  }, 'sums of all')
  for (const n of all.keys()) assert.ok(text.includes(`{"request_id":"req_${n}"}`), text)
  assert.ok(!text.includes('up_'))
  assert.equal(
    ticks().reduce((sum, tick) => sum + tick.output_tokens, 0),
    12,
  )
  assert.deepEqual(ticks().at(-1).unreached, ['old', 'gone', 'foreign'])
  events.close()
  await reading
  // Nobody watches any more, so their streams end with the next event.
  await until(() => {
    turn()
    eventsMs += 60_000
    return all.every(({ isOpen }) => !isOpen)
  }, 'nobody is read any more')
})

test('X9 live events have the credit that is held on all servers', async () => {
  const own = createEvents()
  const two = await startOther('two', {})
  const { others } = createOthers([two])
  const events = watchReplicas({
    ...{ own, others, clockMs: () => eventsMs, nowMs: Date.now },
    ...{ listUpstreams: async () => [], reportBug: assert.ifError },
    readHolds: async () => new Map([['acc_1', 7_000_000_000n]]),
  })
  const changes: Record<string, string>[] = []
  const reading = (async () => {
    for await (const piece of events.watch(undefined))
      for (const [, data] of piece.matchAll(/event: account.changed\ndata: (.+)/g)) changes.push(JSON.parse(data!))
  })()
  await until(() => own.isOpen && two.events.isOpen, 'both are read')
  // Each server knows only the credit that it holds itself.
  own.tell({ event: 'account.changed', data: { id: 'acc_1', balance: '9', held: '3' } })
  await until(() => changes.length === 1, 'the own change')
  two.events.tell({ event: 'account.changed', data: { id: 'acc_1', balance: '8', held: '4' } })
  two.events.tell({ event: 'account.changed', data: { id: 'acc_2', balance: '5', held: '1' } })
  await until(() => changes.length === 3, 'the changes of the other server')
  assert.deepEqual(changes, [
    { id: 'acc_1', balance: '9', held: '7' },
    { id: 'acc_1', balance: '8', held: '7' },
    { id: 'acc_2', balance: '5', held: '0' },
  ])
  events.close()
  own.close()
  two.events.close()
  await reading
})

test('X9 a server that falls silent during live events is named in their ticks, and its events are read again later', async () => {
  const own = createEvents()
  const two = await startOther('two', {})
  const hung = registered('hung', {
    key: 'hungKey',
    url: `http://127.0.0.1:${await listen(createServer(() => {}))}`,
  })
  const { others, advance } = createOthers([two, hung])
  const events = watchReplicas({
    ...{ own, others, lookMs: 100, clockMs: () => eventsMs, nowMs: Date.now },
    ...{ listUpstreams: async () => [], readHolds: async () => new Map(), reportBug: assert.ifError },
  })
  let text = ''
  const reading = (async () => {
    for await (const piece of events.watch(undefined)) text += piece
  })()
  const ticks = () => [...text.matchAll(/event: tick\ndata: (.+)/g)].map(([, data]) => JSON.parse(data!))
  const untilTick = (streams: number, unreached: string[], ticking: Events[]) =>
    until(() => {
      eventsMs += 1_000
      for (const one of ticking) one.tick()
      const tick = ticks().at(-1)
      return tick?.streams === streams && tick.unreached?.join() === unreached.join()
    }, `${streams} streams, without ${unreached}`)
  await untilTick(4, ['hung'], [own, two.events, events])
  const first = ticks().length
  await untilTick(2, ['two', 'hung'], [own, events])
  advance(5_000)
  await untilTick(4, ['hung'], [own, two.events, events])
  for (const { unreached } of ticks().slice(first))
    assert.ok(unreached?.includes('hung'), 'also while it is asked again')
  events.close()
  await reading
})
