import assert from 'node:assert/strict'
import test, { before } from 'node:test'
import fc from 'fast-check'
import type { KeyWishes } from '../../src/accounts/book-rules.ts'
import { type Books, createBooks } from '../../src/accounts/books.ts'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import type { PersonWishes } from '../../src/accounts/person-rules.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { runsUpTo } from '../support/runs.ts'
import { until } from '../support/waiting.ts'

/* People whose keys share a budget and requests a minute (ruling Y20), through the whole gateway. */

let gateway: TestGateway
let books: Books

before(async () => {
  gateway = await startTestGateway({ credit: '1000', models: [testModel('large', 'chat')] })
  books = createBooks(gateway.store.asked, gateway.nowMs, undefined, createCalendar(utc))
})

async function ask(key: string) {
  const body = { model: 'large', messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 20 }
  const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })
  const { error } = (await response.json()) as { error?: { code: string; message: string } }
  return { status: response.status, headers: response.headers, id: response.headers.get('x-request-id')!, ...error }
}

let count = 0
async function makePerson(wishes: PersonWishes): Promise<string> {
  return (await books.createPerson({ externalId: `u-${++count}`, account: 'tester', ...wishes })).id
}

async function makeKey(person: string, wishes: KeyWishes = {}) {
  const made = await books.createKey('tester', { person, ...wishes })
  await gateway.untilKnown(made.key)
  return made
}

async function reasonOf(id: string): Promise<string | null> {
  const told = await gateway.askAdmin(`/api/v1/requests/${id}/explain`)
  return ((await told.json()) as { settlement: { reason: string | null } }).settlement.reason
}

const liveOf = (key: string) => gateway.ledger.directory.findKnownKey(digestKey(key))
const spentOf = async (person: string) => (await books.findPerson(person)).spend?.spentNanos ?? 0n

test('Y20 a budget of a person covers all their keys, also new ones; the refusal says so, and the account has credit', async () => {
  const person = await makePerson({ budget: { nanos: 1n, per: 'day' } })
  const [one, two] = [await makeKey(person), await makeKey(person, { label: 'ci' })]
  assert.equal((await ask(one.key)).status, 200)
  assert.ok((await spentOf(person)) > 1n)
  const refused = await ask(two.key)
  assert.deepEqual([refused.status, refused.code], [402, 'insufficient_credits'])
  assert.equal(refused.headers.get('x-should-retry'), 'false')
  const untilMs = (await books.findPerson(person)).spend!.untilMs
  const renews = new Date(untilMs).toISOString().replace('.000', '')
  assert.equal(
    refused.message,
    `The person with the API key "ci" (${two.prefix}…) has spent their budget of 0.000000001 credits a day: it renews at ${renews}. Ask the operator of the account for more.`,
  )
  assert.equal(await reasonOf(refused.id), 'person_budget_spent')
  await books.revokeKey(one.id)
  await books.revokeKey(two.id)
  const next = await makeKey(person)
  assert.equal((await ask(next.key)).status, 402, 'signing in again, or a new key, gives no new budget')
  assert.equal((await ask(gateway.key)).status, 200)
  const restMs = untilMs - gateway.nowMs()
  gateway.jump(restMs)
  assert.equal((await ask(next.key)).status, 200)
  gateway.jump(-restMs)
  await books.updatePerson(person, { budget: { nanos: 10n ** 12n, per: 'week' } })
  await until(() => liveOf(next.key)?.personBounds?.budget?.per === 'week', 'the gateway knows another budget')
  assert.equal((await ask(next.key)).status, 200)
  liveOf(next.key)!.personBounds!.heldNanos = 5n * 10n ** 9n
  const told = (await (await gateway.askAdmin(`/api/v1/persons/${person}`)).json()) as { budget: { held: string } }
  const ofKey = (await (await gateway.askAdmin(`/api/v1/keys/${next.id}`)).json()) as { person_budget: object }
  assert.equal(told.budget.held, '5')
  assert.deepEqual(ofKey.person_budget, told.budget)
  liveOf(next.key)!.personBounds!.heldNanos = 0n
  await books.updatePerson(person, { budget: null })
  await until(() => liveOf(next.key)?.personBounds === undefined, 'the gateway knows that there is none')
})

test('Y20 R13 a person’s requests a minute cover all their keys: in the headers, and exactly 300 of them', async () => {
  const person = await makePerson({ requestsPerMinute: 3 })
  const keys = [await makeKey(person), await makeKey(person, { requestsPerMinute: 200 })]
  const first = await ask(keys[0]!.key)
  const told = (answer: typeof first) =>
    ['limit', 'remaining'].map((name) => answer.headers.get(`x-ratelimit-${name}-requests`))
  assert.deepEqual(told(first), ['3', '2'])
  assert.deepEqual(told(await ask(keys[1]!.key)), ['3', '1'])
  await ask(keys[0]!.key)
  const refused = await ask(keys[1]!.key)
  assert.deepEqual([refused.status, refused.code], [429, 'rate_limit_exceeded'])
  assert.match(refused.message!, /^The person with this API key has made too many requests with all their keys/)
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  assert.equal(await reasonOf(refused.id), 'person_window')
  gateway.advance(60_000)
  await books.updateAccount('tester', { requestsPerMinute: 1_000 })
  await books.updatePerson(person, { requestsPerMinute: 300 })
  await until(() => liveOf(keys[0]!.key)?.personBounds?.requestsPerMinute === 300, 'the gateway knows another limit')
  const answers = await Promise.all(Array.from({ length: 340 }, (_, n) => ask(keys[n % 3 ? 0 : 1]!.key)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 300)
  gateway.advance(60_000)
})

test('Y20 Y21 keys of a newly linked identity get the limits of the person; those of an erased person have none', async () => {
  const [person, second] = [await makePerson({ budget: { nanos: 1n, per: 'month' } }), await makePerson({})]
  const [one, two] = [await makeKey(person), await makeKey(second)]
  assert.deepEqual([(await ask(one.key)).status, (await ask(two.key)).status], [200, 200])
  await books.linkPersons(person, second)
  await until(() => liveOf(two.key)?.personBounds !== undefined, 'the gateway knows whose key it is')
  assert.equal((await ask(two.key)).status, 402)
  await books.erasePerson(person)
  await until(() => liveOf(two.key)?.personBounds === undefined, 'the gateway knows that it is nobody’s')
  assert.equal((await ask(two.key)).status, 200)
  assert.deepEqual(await gateway.store.verify(verifyOptions), [])
})

const step = fc.record({
  act: fc.constantFrom('ask', 'ask', 'ask', 'key', 'rotate', 'revoke', 'link'),
  which: fc.nat(9),
})

test('Y20 whatever keys a person gets, rotates and loses, their spending is the sum of the person’s entries', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async (steps) => {
      const person = await makePerson({ budget: { nanos: 10n ** 12n, per: 'month' } })
      const other = await makePerson({})
      const keys = [await makeKey(person), await makeKey(other)]
      const ids: string[] = []
      for (const { act, which } of steps) {
        const key = keys[which % keys.length]
        if (act === 'key') keys.push(await makeKey(which % 2 ? person : other))
        else if (act === 'link') await books.linkPersons(person, other).catch(() => {})
        else if (!key) continue
        else if (act === 'ask') ids.push((await ask(key.key)).id)
        else if (act === 'revoke') await books.revokeKey(key.id).then(() => keys.splice(which % keys.length, 1))
        else {
          const next = await books.rotateKey(key.id, 0)
          await gateway.untilKnown(next.key)
          keys[which % keys.length] = next
        }
      }
      const entries = await Promise.all(ids.map((id) => books.findEntry(id)))
      const theirs = new Set(
        (await books.namePersons([person, other])).get(other)?.id === person ? [person, other] : [person],
      )
      const sum = entries.reduce(
        (all, one) => all + (theirs.has(one?.details?.person ?? '') ? one!.amountNanos : 0n),
        0n,
      )
      assert.equal(await spentOf(person), sum)
      gateway.advance(60_000)
    }),
    { numRuns: runsUpTo(12) },
  )
  assert.deepEqual(await gateway.store.verify(verifyOptions), [])
})
