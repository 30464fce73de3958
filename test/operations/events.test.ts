import assert from 'node:assert/strict'
import test from 'node:test'
import { soundOutcomes } from '../../src/accounts/usage/question.ts'
import type { CallRecord } from '../../src/gateway/record.ts'
import { Events } from '../../src/live/events.ts'
import type { UpstreamState } from '../../src/operations/shapes.ts'
import { turn, until } from '../support/waiting.ts'
import { problemOf, startApi } from './api.ts'
import { readEvents } from './event-reader.ts'

type Api = Awaited<ReturnType<typeof startApi>>

const question = { model: 'native-chat', messages: [{ role: 'user', content: 'canary-event' }] }

async function paid({ gateway }: Api): Promise<string> {
  const answer = await gateway.post('/v1/chat/completions', question)
  await answer.text()
  return answer.headers.get('x-request-id')!
}

const watch = (api: Api, token: string, headers = {}) =>
  readEvents(api.gateway.adminUrl, { authorization: `Bearer ${token}`, ...headers })

test('issue 13: events report requests, accounts and upstreams, and each second a sum; none has content (U5)', async () => {
  const api = await startApi({ cools: true })
  const { gateway, ask, viewer, keyB } = api
  // Else the gateway may hear of the other account while it is watched, and tell of that first.
  await gateway.untilKnown(keyB)
  const stream = await watch(api, viewer)
  assert.equal(stream.response.headers.get('content-type'), 'text/event-stream')
  await until(() => stream.text().startsWith('retry: '))
  const id = await paid(api)
  const [finished] = await stream.wait('request.finished')
  const listed = (await ask('GET', '/requests')).body.items!
  assert.deepEqual(finished!.data, listed[0])
  assert.equal(finished!.data['request_id'], id)
  gateway.advance(1_000)
  const [tick] = await stream.wait('tick')
  const { requests, errors, credits, streams } = tick!.data
  assert.deepEqual([requests, errors, streams], [1, 0, 0])
  assert.equal(credits, finished!.data['credits'])
  const [changed] = await stream.wait('account.changed')
  const { id: accountId, name, state, balance, held } = (await ask('GET', '/accounts/tester')).body
  assert.deepEqual(changed!.data, { id: accountId, name, state, balance, held })
  await ask('POST', '/accounts/b/credits', { body: { credits: '3', reference: 'r' } })
  const again = await stream.wait('account.changed', 2, () => gateway.advance(1_000))
  assert.deepEqual([again.at(-1)!.data['name'], again.at(-1)!.data['balance']], ['b', '10'])
  await ask('POST', '/upstreams/sim/disable', { body: { model: 'native-chat' } })
  gateway.advance(1_000)
  const [upstream] = await stream.wait('upstream.state')
  assert.deepEqual([upstream!.data['model'], upstream!.data['state']], ['native-chat', 'disabled'])
  await ask('POST', '/upstreams/sim/enable', { body: {} })
  gateway.advance(15_000)
  await until(() => /^: still here$/m.test(stream.text()))
  assert.ok(!stream.text().includes('canary-event'))
  stream.close()
})

test('issue 13: a returning client gets the events it missed, or a notice of a gap if they are unknown', async () => {
  const api = await startApi()
  const { viewer, gateway } = api
  const first = await watch(api, viewer)
  await paid(api)
  const [read] = await first.wait('request.finished')
  first.close()
  const missed = [await paid(api), await paid(api)]
  const second = await watch(api, viewer, { 'last-event-id': read!.id! })
  const told = await second.wait('request.finished', 2)
  assert.deepEqual(
    told.map(({ data }) => data['request_id']),
    missed,
  )
  second.close()
  for (const id of ['other-1', `${read!.id!.split('-')[0]}-999`, 'x', '-', `${read!.id}9`]) {
    const lost = await watch(api, viewer, { 'last-event-id': id })
    await lost.wait('reset')
    lost.close()
  }
  // A minute after the last reader nothing is collected any more.
  for (let at = 0; at < 20; at++) {
    gateway.advance(60_000)
    await fetch(`${gateway.adminUrl}/healthz`)
  }
  await paid(api)
  const late = await watch(api, viewer, { 'last-event-id': told.at(-1)!.id! })
  await late.wait('reset')
  late.close()
})

test('operate §4 §6 an operator may have twenty streams, each as long as its token is valid', async () => {
  const api = await startApi()
  const { viewer, gateway, books, ask, keyA } = api
  assert.equal(problemOf(await ask('GET', '/events', { token: keyA })), 'forbidden')
  const streams = await Promise.all(Array.from({ length: 20 }, () => watch(api, viewer)))
  assert.ok(streams.every(({ response }) => response.status === 200))
  assert.equal(problemOf(await ask('GET', '/events', { token: viewer })), 'rate_limited')
  for (const stream of streams) stream.close()
  await until(async () => {
    gateway.advance(60_000)
    return (await ask('GET', '/events', { token: viewer })).status === 200
  })
  const cookie = (await ask('POST', '/session', { token: '', body: { token: viewer } })).headers.get('set-cookie')!
  const [byToken, byCookie] = [
    await watch(api, viewer),
    await readEvents(gateway.adminUrl, { cookie: cookie.split(';')[0]! }),
  ]
  await books.revokeOperator('vic')
  for (const stream of [byToken, byCookie])
    await until(() => {
      gateway.advance(1_000)
      return stream.isOver()
    })
})

/** Events without a gateway around them. */
function alone(listUpstreams: () => Promise<UpstreamState[]> = async () => []) {
  let nowMs = 0
  let asked = 0
  const bugs: Error[] = []
  const events = new Events({
    clockMs: () => nowMs,
    nowMs: () => nowMs,
    listUpstreams: () => {
      asked++
      return listUpstreams()
    },
    tellAccounts: () => [],
    countStreams: () => 0,
    reportBug: (bug) => bugs.push(bug),
  })
  const record = { id: 'req_1', startedMs: 0, endMs: 1, walk: 'infer', method: 'POST', path: '/', ip: '' } as CallRecord
  const pass = (ms: number) => {
    nowMs += ms
    events.tick()
  }
  return { events, record, pass, bugs, asked: () => asked }
}

test('issue 13: while no client watches, nothing is written, queried or kept', () => {
  const { events, pass, asked } = alone()
  const unread = new Proxy({} as CallRecord, {
    get() {
      throw new Error('a request is looked at')
    },
  })
  events.note(unread)
  events.noteAccount('a')
  pass(5_000)
  assert.equal(asked(), 0)
})

test('issue 13: a slow reader gets the number of dropped events, and then the next ones', async () => {
  const { events, record } = alone()
  const reading = events.watch(undefined)[Symbol.asyncIterator]()
  assert.equal((await reading.next()).value, 'retry: 2000\n\n')
  const first = reading.next()
  await turn()
  for (let at = 0; at < 1_200; at++) events.note(record)
  assert.match((await first).value, /^id: \w+-\d+\nevent: request\.finished\n/)
  const read: string[] = []
  for (let at = 1; at < 1_000; at++) read.push((await reading.next()).value)
  const { value } = await reading.next()
  assert.equal(value, 'event: dropped\ndata: {"count":200}\n\n')
  events.note(record)
  assert.match((await reading.next()).value, /request\.finished/)
  events.close()
  assert.equal((await reading.next()).done, true)
})

test('issue 13: the sums of a second count the same requests as failed as reports do', async () => {
  const { events, record, pass } = alone()
  const reading = events.watch(undefined)[Symbol.asyncIterator]()
  await reading.next()
  const first = reading.next()
  await turn()
  const outcomes = [undefined, ...soundOutcomes, 'upstream_cut', 'refused'] as CallRecord['outcome'][]
  for (const outcome of outcomes) events.note({ ...record, outcome } as CallRecord)
  pass(1_000)
  const texts = [(await first).value]
  while (!texts.at(-1).includes('event: tick')) texts.push((await reading.next()).value)
  const { requests, errors } = JSON.parse(/^data: (.*)$/m.exec(texts.at(-1))![1]!)
  assert.deepEqual([requests, errors], [outcomes.length, 2])
  events.close()
})

test('issue 13: the last thousand events are kept, and no more', async () => {
  const { events, record } = alone()
  const reading = events.watch(undefined)[Symbol.asyncIterator]()
  await reading.next()
  void reading.next()
  await turn()
  for (let at = 0; at < 3_000; at++) events.note(record)
  events.tell({ event: 'account.changed', data: {} })
  const id = /^id: (\w+)-(\d+)/.exec((await events.watch('x')[Symbol.asyncIterator]().next()).value)
  assert.equal(id, null)
  const back = events.watch(`${await runOf()}-${3_001 - 700}`)[Symbol.asyncIterator]()
  await back.next()
  assert.match((await back.next()).value, /request\.finished/)
  const lost = events.watch(`${await runOf()}-${3_001 - 1_001}`)[Symbol.asyncIterator]()
  await lost.next()
  assert.match((await lost.next()).value, /reset/)
  events.close()

  async function runOf(): Promise<string> {
    const unknown = events.watch('x')[Symbol.asyncIterator]()
    await unknown.next()
    return /^id: (\w+)-/.exec((await unknown.next()).value)![1]!
  }
})

test('issue 13: slow states of upstreams are queried one at a time, and no outdated state is reported', async () => {
  const looks: PromiseWithResolvers<UpstreamState[]>[] = []
  const { events, pass, bugs } = alone(() => {
    looks.push(Promise.withResolvers())
    return looks.at(-1)!.promise
  })
  const reading = events.watch(undefined)[Symbol.asyncIterator]()
  await reading.next()
  const state = (name: string) =>
    [{ model: 'm', upstream: 'u', account: 'a', state: name, cause: null }] as UpstreamState[]
  for (let at = 0; at < 3; at++) pass(1_000)
  assert.equal(looks.length, 1)
  looks[0]!.resolve(state('ready'))
  await turn()
  pass(1_000)
  looks[1]!.reject(new Error('nobody answers'))
  await turn()
  assert.deepEqual(
    bugs.map(({ message }) => message),
    ['nobody answers'],
  )
  pass(1_000)
  looks[2]!.resolve(state('cooling'))
  await turn()
  events.close()
  const texts: string[] = []
  for await (const text of { [Symbol.asyncIterator]: () => reading }) texts.push(text)
  assert.equal(texts.filter((text) => text.includes('upstream.state')).length, 1)
})

test('issue 13: an upstream that a model lists twice, with two states, is reported only when a state changes', async () => {
  let states = ['ready', 'cooling']
  const { events, pass } = alone(async () =>
    states.map((state) => ({ model: 'm', upstream: 'u', account: 'a', state, cause: null }) as UpstreamState),
  )
  const texts: string[] = []
  const read = async () => {
    for await (const text of events.watch(undefined)) texts.push(text)
  }
  const reading = read()
  await turn()
  const look = async () => {
    pass(1_000)
    await turn()
  }
  for (let at = 0; at < 3; at++) await look()
  states = ['ready', 'ready']
  for (let at = 0; at < 3; at++) await look()
  events.close()
  await reading
  assert.equal(texts.filter((text) => text.includes('upstream.state')).length, 1)
})
