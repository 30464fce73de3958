import assert from 'node:assert/strict'
import test, { before } from 'node:test'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import { createPerson, erasePerson } from '../../src/accounts/person-rules.ts'
import { explainDebit } from '../../src/live/explanation.ts'
import type { Explanation } from '../../src/operations/shapes.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { paths } from '../support/native.ts'
import { until } from '../support/waiting.ts'

/* Who asks and what for, through the whole gateway (ruling Y21): what the header may say, and what becomes of it. */

let gateway: TestGateway

before(async () => {
  gateway = await startTestGateway({ config: { labels: { project: ['apollo', 'gemini'], team: ['red'] } } })
})

const wires = ['messages', 'chat', 'responses'] as const

const bodies = {
  messages: { model: 'native-messages', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
  chat: { model: 'native-chat', messages: [{ role: 'user', content: 'hi' }] },
  responses: { model: 'native-responses', input: 'hi' },
}

async function makeKey(wishes: Parameters<typeof gateway.store.createKey>[1]) {
  const made = gateway.store.createKey('tester', wishes)
  await gateway.untilKnown(made.key)
  return made
}

async function ask(key: string, wire: (typeof wires)[number], headers: Record<string, string>, more = {}) {
  const response = await gateway.post(
    paths[wire],
    { ...bodies[wire], ...more },
    { authorization: `Bearer ${key}`, ...headers },
  )
  return { status: response.status, text: await response.text(), id: response.headers.get('x-request-id')! }
}

const entryOf = (id: string) => gateway.store.findEntry(id)

test('Y21 an entry has the person and the labels of its key, or the client’s choice instead of them, on every wire', async () => {
  const person = gateway.store.change(
    createPerson({ name: 'Qwertzu', externalId: 'u-1' }, { nowMs: 1, calendar: createCalendar(utc) }),
  )
  const { key } = await makeKey({ person: 'u-1', labels: ['project=apollo', 'team=red'], mayChoose: ['project'] })
  for (const wire of wires)
    for (const stream of [false, true])
      for (const [sent, labels] of [
        [undefined, 'project=apollo,team=red'],
        ['project=gemini', 'project=gemini,team=red'],
        [' , project=gemini ,', 'project=gemini,team=red'],
        ['', 'project=apollo,team=red'],
      ] as const) {
        const told = await ask(key, wire, sent === undefined ? {} : { 'x-triwire-labels': sent }, { stream })
        assert.equal(told.status, 200, told.text)
        assert.deepEqual(entryOf(told.id)?.details, { person: person.id, labels }, `${wire} ${sent}`)
      }
  for (const { headers } of gateway.simulator.requests) assert.equal(headers['x-triwire-labels'], undefined)
  assert.doesNotMatch(JSON.stringify(await gateway.logLines()), /Qwertzu/)
  gateway.store.change(erasePerson('u-1', 2))
  await until(
    () => gateway.ledger.directory.findKnownKey(digestKey(key))?.bounds?.person === undefined,
    'the key is nobody’s',
  )
  const { id } = await ask(key, 'chat', {})
  assert.deepEqual(entryOf(id)?.details, { labels: 'project=apollo,team=red' })
})

test('Y21 explain, the list of requests and the log show the person of a request by id, and its labels, as its entry does', async () => {
  const person = gateway.store.change(
    createPerson({ name: 'Qwertzu', externalId: 'u-7' }, { nowMs: 1, calendar: createCalendar(utc) }),
  )
  const { key } = await makeKey({ person: 'u-7', labels: ['project=apollo', 'team=red'], mayChoose: ['project'] })
  const { id } = await ask(key, 'chat', { 'x-triwire-labels': 'project=gemini' })
  const expected = { person: person.id, labels: 'project=gemini,team=red' }
  const pick = ({ person, labels }: { person?: unknown; labels?: unknown }) => ({ person, labels })
  const get = async (path: string) => (await gateway.askAdmin(`/api/v1${path}`)).json()
  assert.deepEqual(pick((await get(`/requests/${id}/explain`)) as object), expected)
  const { items } = (await get('/requests')) as { items: { request_id: string; person: unknown; labels: unknown }[] }
  assert.deepEqual(pick(items.find(({ request_id }) => request_id === id)!), expected)
  assert.deepEqual(pick(await gateway.logOf(id)), expected)
  assert.doesNotMatch(JSON.stringify(items), /Qwertzu/)
  // Of the ledger alone, as after a restart.
  assert.deepEqual(pick(explainDebit(gateway.store.findDebit(id)!)), expected)
  const plain = await ask(gateway.key, 'chat', {})
  assert.deepEqual(pick((await get(`/requests/${plain.id}/explain`)) as object), { person: null, labels: null })
})

test('issue 47 an operator’s explain names the person and the key beside their ids, until the person is erased', async () => {
  gateway.store.change(
    createPerson({ name: 'Ada Byron', externalId: 'u-8' }, { nowMs: 1, calendar: createCalendar(utc) }),
  )
  const { key } = await makeKey({ person: 'u-8', label: 'notebook' })
  const { id } = await ask(key, 'chat', {})
  const namesOf = async (request: string) => {
    const told = (await (await gateway.askAdmin(`/api/v1/requests/${request}/explain`)).json()) as Explanation
    return [told.person_name, told.key_name]
  }
  assert.deepEqual(await namesOf(id), ['Ada Byron', 'notebook'])
  gateway.store.change(erasePerson('u-8', 2))
  assert.deepEqual(await namesOf(id), [null, 'notebook'])
  const plain = await ask(gateway.key, 'chat', {})
  assert.deepEqual(await namesOf(plain.id), [null, null])
})

test('Y21 an entry of a key without a person and labels keeps the earlier form', async () => {
  const { id } = await ask(gateway.key, 'chat', {})
  assert.equal(entryOf(id)?.details, undefined)
})

test('Y21 law 11: an undeclared or forbidden label gets 400 with the header and the cure, and no word of the client', async () => {
  const narrow = await makeKey({ labels: ['project=apollo'], mayChoose: ['project', 'team'] })
  const cases: readonly [string, string, RegExp][] = [
    [gateway.key, 'project=apollo', /may choose none: leave it out/],
    [gateway.key, 'canary-a=canary-b', /may choose none: leave it out/],
    ...[
      'project=canary-c',
      'canary-d',
      'canary-e=apollo',
      'project=apollo,project=gemini',
      'project=',
      '=apollo',
      'project=Apollo',
    ].map((sent) => [narrow.key, sent, /one declared value for each of project, team/] as [string, string, RegExp]),
  ]
  const before = gateway.simulator.requests.length
  const entries = gateway.store.listEntries({ limit: 99 }).length
  for (const wire of wires)
    for (const [key, sent, message] of cases) {
      const told = await ask(key, wire, { 'x-triwire-labels': sent, 'x-canary-header': 'canary-f' })
      assert.equal(told.status, 400, `${wire} ${sent}: ${told.text}`)
      const { error } = JSON.parse(told.text)
      assert.match(error.message, message)
      assert.match(error.message, /x-triwire-labels/)
      if (wire !== 'messages') assert.equal(error.param, 'x-triwire-labels')
      // A value may be the name of another customer's project.
      assert.doesNotMatch(told.text, /canary|gemini|\bred\b/)
      assert.equal((await gateway.logOf(told.id))['code'], 'invalid_request')
    }
  assert.equal(gateway.simulator.requests.length, before)
  assert.equal(gateway.store.listEntries({ limit: 99 }).length, entries)
})

test('Y21 the token counter and the list of models ignore the header, and browsers may send it', async () => {
  const headers = { 'x-triwire-labels': 'canary-g=canary-h' }
  assert.equal((await gateway.post('/v1/messages/count_tokens', bodies.messages, headers)).status, 200)
  assert.equal((await fetch(`${gateway.url}/v1/models`, { headers })).status, 200)
  const preflight = await fetch(gateway.url + paths.chat, {
    method: 'OPTIONS',
    headers: { origin: 'https://a.example' },
  })
  assert.match(preflight.headers.get('access-control-allow-headers')!, /x-triwire-labels/)
})

test('Y21 a value that a reload removed can no longer be chosen; labels of keys stay', async () => {
  const { key } = await makeKey({ labels: ['team=red'], mayChoose: ['project'] })
  gateway.reload({ labels: { project: ['apollo'] } })
  assert.equal((await ask(key, 'chat', { 'x-triwire-labels': 'project=gemini' })).status, 400)
  const { id } = await ask(key, 'chat', { 'x-triwire-labels': 'project=apollo' })
  assert.deepEqual(entryOf(id)?.details, { labels: 'project=apollo,team=red' })
})

test('Y21 law 4: the entries are correct, and have exactly the words that the operator declared', () => {
  assert.deepEqual(gateway.store.verify(verifyOptions), [])
  const words = gateway.store.listEntries({ limit: 999 }).flatMap(({ details }) => details?.labels?.split(',') ?? [])
  assert.deepEqual([...new Set(words)].sort(), ['project=apollo', 'project=gemini', 'team=red'])
})
