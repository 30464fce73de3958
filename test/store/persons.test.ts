import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { parseHead } from '../../src/accounts/chain.ts'
import {
  createPerson,
  erasePerson,
  linkPersons,
  type PersonLine,
  updatePerson,
} from '../../src/accounts/person-rules.ts'
import type { StatementHeader } from '../../src/accounts/statement.ts'
import { openStore } from '../support/operator.ts'
import { runsUpTo } from '../support/runs.ts'
import { onEachStore } from './engines.ts'
import { createDebitRow, createPath, verifyOptions } from './fixtures.ts'

const act = { actor: 'operator:ann', address: '192.0.2.7' }
const calendar = createCalendar(utc)
const counting = { calendar, sumsOf: () => undefined }

onEachStore((engine) => {
  async function open() {
    const store = await engine.open({ atMs: 1_800_000_000_000 })
    return { store, books: store.as(act) }
  }

  test('Y22 the people of an account are those that it names, and all who have a key of it', async () => {
    const { store, books } = await open()
    const [one, two] = [await store.createAccount('one'), await store.createAccount('two')]
    const make = async (name: string, account?: string) =>
      (await books.createPerson({ name, ...(account && { account }) })).id
    const [keyed, both] = [await make('Keyed'), await make('Both')]
    await make('Named', one.id)
    await make('Nobody')
    await books.createKey(one.id, { person: keyed })
    await books.createKey(one.id)
    for (const account of [one, two]) await books.createKey(account.id, { person: both })
    const namesOf = async (usingAccountId: string) =>
      (await store.pagePersons({ usingAccountId, limit: 9 })).map(({ name }) => name).sort()
    assert.deepEqual(await namesOf(one.id), ['Both', 'Keyed', 'Named'])
    assert.deepEqual(await namesOf(two.id), ['Both'])
  })

  test('Y21 a person is found by id, external id, or an address or name that is unique', async () => {
    const { books } = await open()
    const ada = await books.createPerson({ name: 'Ada L', externalId: 'u-1', email: 'Ada@Example.COM' })
    const twin = await books.createPerson({ name: 'Ada L', externalId: 'Ada' })
    for (const asked of [ada.id, 'u-1', 'ada@example.com', 'ADA@example.com'])
      assert.equal((await books.findPerson(asked)).id, ada.id, asked)
    assert.equal((await books.findPerson('Ada')).id, twin.id)
    await assert.rejects(books.findPerson('Ada L'), { code: 'person_ambiguous' })
    for (const asked of ['ada l', 'u-2', '', 'a\0b'])
      await assert.rejects(books.findPerson(asked), { code: 'no_person' })
    await books.updatePerson(twin.id, { name: null })
    assert.equal((await books.findPerson('Ada L')).id, ada.id)
    await assert.rejects(books.createPerson({ externalId: 'u-1' }), { code: 'person_taken' })
    await assert.rejects(books.updatePerson(twin.id, { externalId: 'u-1' }), { code: 'person_taken' })
    await assert.rejects(books.updatePerson(twin.id, { externalId: null }), { code: 'person_unnamed' })
    await assert.rejects(books.createPerson({ account: 'nobody', name: 'x' }), { code: 'no_account' })
  })

  test('Y21 a line of rotations has one person, who is set and removed for all of its keys', async () => {
    const { books } = await open()
    const { id: accountId } = await books.createAccount('one')
    const { id } = await books.createPerson({ name: 'Ada', account: 'one' })
    const first = await books.createKey('one', { person: 'Ada' })
    const second = await books.rotateKey(first.id, 60_000)
    const personsOf = async () =>
      (await books.listKeys('one')).map(({ bounds, personName }) => [bounds.person, personName])
    assert.deepEqual(await personsOf(), [
      [id, 'Ada'],
      [id, 'Ada'],
    ])
    await books.updateKey(second.id, { person: null })
    assert.deepEqual(await personsOf(), [
      [undefined, undefined],
      [undefined, undefined],
    ])
    await books.updateKey(first.id, { person: id })
    assert.equal(
      (await personsOf()).every(([one]) => one === id),
      true,
    )
    await books.createAccount('two')
    await assert.rejects(books.createKey('two', { person: 'Ada' }), { code: 'person_elsewhere' })
    await assert.rejects(books.createKey('two', { person: 'Bo' }), { code: 'no_person' })
    await assert.rejects(books.updatePerson(id, { account: 'two' }), { code: 'person_elsewhere' })
    assert.equal((await books.updatePerson(id, { account: null })).accountId, undefined)
    await books.createKey('two', { person: 'Ada' })
    await assert.rejects(books.updatePerson(id, { account: accountId }), { code: 'person_elsewhere' })
  })

  test('Y21 two identities are one person: in keys, names and later lookups', async () => {
    const { books, store } = await open()
    await books.createAccount('one')
    const [a, b, c] = [
      await books.createPerson({ externalId: 'u-a' }),
      await books.createPerson({ externalId: 'u-b', name: 'Bo', email: 'b@x' }),
      await books.createPerson({ externalId: 'u-c', name: 'Cy' }),
    ]
    const key = await books.createKey('one', { person: 'u-c' })
    await books.linkPersons('u-b', 'u-c')
    const revision = (await store.readChanges(0n)).revision
    const linked = await books.linkPersons('u-a', 'u-b')
    assert.deepEqual([linked.id, linked.name, linked.email], [a.id, 'Bo', 'b@x'])
    for (const asked of ['u-a', 'u-b', 'u-c', b.id, c.id, 'Bo'])
      assert.equal((await books.findPerson(asked)).id, a.id, asked)
    assert.equal((await books.listKeys())[0]!.bounds.person, a.id)
    assert.equal((await store.readChanges(revision)).accountIds.length, 1, 'servers read the keys again')
    await assert.rejects(books.linkPersons('u-a', 'u-c'), { code: 'person_same' })
    await assert.rejects(books.findPerson('Cy'), { code: 'no_person' })
    await books.erasePerson('u-c')
    for (const asked of ['u-a', 'u-b', 'u-c', a.id, b.id, 'Bo', 'b@x'])
      await assert.rejects(books.findPerson(asked), { code: 'no_person' }, asked)
    assert.equal((await books.findKeys(key.id))[0]!.bounds.person, undefined)
  })

  test('Y21 keys of a second identity that are all revoked belong to the person as well, and then to nobody', async () => {
    const { books } = await open()
    const { id: accountId } = await books.createAccount('one')
    await books.createAccount('two')
    const [a] = [await books.createPerson({ externalId: 'u-a' }), await books.createPerson({ externalId: 'u-b' })]
    const key = await books.createKey('one', { person: 'u-b' })
    await books.revokeKey(key.id)
    await books.linkPersons('u-a', 'u-b')
    const theirs = async () => (await books.pageKeys({ personId: a.id, limit: 9 })).map(({ id }) => id)
    assert.deepEqual(await theirs(), [key.id])
    const people = await books.pagePersons({ usingAccountId: accountId, limit: 9 })
    assert.deepEqual(
      people.map(({ id }) => id),
      [a.id],
    )
    // A revoked key does not keep its person in an account.
    await books.updatePerson('u-a', { account: 'two' })
    await books.erasePerson('u-a')
    assert.deepEqual(await theirs(), [])
  })

  test('Y21 a statement that is stored while a person is erased does not keep the name', async () => {
    const { store, books } = await open()
    const { id } = await books.createAccount('one')
    const make = async (name: string): Promise<StatementHeader['persons'][number]> => {
      const person = await books.createPerson({ name })
      return [person.id, { id: person.id, name }]
    }
    const headerOf = (persons: StatementHeader['persons']): StatementHeader => ({
      ...{ buyer: 'one', words: { symbol: '', name: '', seller: '' }, timeZone: 'UTC', head: '', keys: [], persons },
    })
    const [ada, bob] = [await make('Ada'), await make('Bob')]
    await books.erasePerson(ada[0])
    assert.deepEqual((await books.keepHeader(id, '2026-01', headerOf([ada, bob]))).persons, [bob])
    const other = await store.beside()
    for (let n = 10; n < 30; n++) {
      const one = await make(`Cy ${n}`)
      await Promise.all([books.keepHeader(id, `20${n}-02`, headerOf([one])), other.erasePerson(one[0])])
      assert.deepEqual((await books.readHeader(id, `20${n}-02`))?.persons, [])
    }
  })

  test('Y21 a second import of a list changes nothing; an erased person who returns is a new one', async () => {
    const { books } = await open()
    await books.createAccount('one')
    const list: PersonLine[] = [
      { line: 2, externalId: 'u-1', name: 'Ada', account: 'one' },
      { line: 3, email: 'BO@x', name: 'Bo' },
      { line: 4, name: 'Cy' },
    ]
    assert.deepEqual(await books.importPersons(list), { created: 3, changed: 0, unchanged: 0 })
    assert.deepEqual(await books.importPersons(list), { created: 0, changed: 0, unchanged: 3 })
    const more = [
      { line: 2, externalId: 'u-2', email: 'bo@x', name: 'Bo B' },
      { line: 3, externalId: 'u-3', name: 'Cy' },
    ]
    assert.deepEqual(await books.importPersons(more), { created: 0, changed: 2, unchanged: 0 })
    const { id } = await books.findPerson('u-1')
    await books.erasePerson(id)
    assert.deepEqual(await books.importPersons(list), { created: 1, changed: 1, unchanged: 1 })
    assert.notEqual((await books.findPerson('u-1')).id, id)
    const people = await books.pagePersons({ limit: 9 })
    assert.deepEqual(people.map(({ name }) => name).sort(), ['Ada', 'Bo', 'Cy'])
    assert.deepEqual(
      (await books.pagePersons({ limit: 9, q: 'bO' })).map(({ name }) => name),
      ['Bo'],
    )
    assert.deepEqual((await books.pagePersons({ limit: 1, beyond: [people[0]!.createdMs, people[0]!.id] })).length, 1)
  })

  test('Y21 a line that is wrong or matches two people is named, and nothing of its list is imported', async () => {
    const { books } = await open()
    await books.createPerson({ name: 'Ada', externalId: 'x' })
    await books.createPerson({ name: 'Ada', externalId: 'y' })
    const cases: readonly [Omit<PersonLine, 'line'>[], string, number][] = [
      [[{ name: 'Ada' }], 'person_ambiguous', 2],
      [[{ name: 'Bo' }, { name: 'Bo' }], 'person_twice', 3],
      [[{ externalId: 'b' }, { externalId: 'b', name: 'c' }], 'person_twice', 3],
      [[{ externalId: 'x', email: 'a@x' }, { email: 'a@x' }], 'person_twice', 3],
      [[{ name: 'Bo' }, { account: 'nobody', name: 'Cy' }], 'no_account', 3],
      [[{ name: 'Bo' }, { email: 'none' }], 'email_invalid', 3],
      [[{ name: 'Bo' }, { name: 'sk-tri-abcd' }], 'person_name_invalid', 3],
      [[{ name: 'Bo' }, {}], 'person_unnamed', 3],
    ]
    for (const [rows, code, line] of cases) {
      await assert.rejects(books.importPersons(rows.map((row, at) => ({ line: at + 2, ...row }))), { code, line })
      assert.equal((await books.pagePersons({ limit: 9 })).length, 2, code)
    }
  })

  test('Y21 law 10: changes of people change no digest, sum or head, and no name of a person is in audit or entries', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('name', 'email', 'link', 'erase', 'import', 'key'), { maxLength: 6 }),
        async (steps) => {
          const { books, store } = await open()
          const { id: accountId } = await books.createAccount('one', 10n ** 12n)
          const secret = 'Zzyzx'
          const persons: string[] = []
          for (const n of [1, 2]) {
            const wishes = { name: `${secret} ${n}`, externalId: `${secret}-${n}`, email: `${secret}${n}@x` }
            persons.push((await books.createPerson(wishes)).id)
          }
          const { id: keyId } = await books.createKey('one', { person: `${secret}-1` })
          await store.postDebits(
            [...persons, undefined].map((person, n) => ({
              ...createDebitRow(`req_${n}`, accountId),
              keyId,
              ...(person !== undefined && { details: { person } }),
            })),
          )
          const read = async () => {
            const entries = await books.listEntries({ limit: 9 })
            return {
              entries,
              totals: await books.sumEntries({}, ['key']),
              balance: (await books.findAccount('one')).balanceNanos,
            }
          }
          const { head } = await books.audit(verifyOptions)
          const before = await read()
          assert.deepEqual(before.entries.flatMap(({ details }) => details?.person ?? []).sort(), persons.sort())
          for (const [at, step] of [...steps, 'erase'].entries()) {
            const of = `${secret}-1`
            const deeds: Record<string, () => Promise<unknown>> = {
              name: () => books.updatePerson(of, { name: `${secret} new ${at}` }),
              email: () => books.updatePerson(of, { email: null }),
              link: () => books.linkPersons(of, `${secret}-2`),
              erase: () => books.erasePerson(of),
              import: () => books.importPersons([{ line: 2, externalId: of, name: `${secret} ${at}` }]),
              key: () => books.updateKey(keyId, { person: of }),
            }
            // A step may be about a person who was erased or linked already.
            await deeds[step]!().catch((error) => assert.match(error.code, /^(no_person|person_same)$/))
          }
          assert.deepEqual(await read(), before)
          assert.deepEqual(await books.verify({ ...verifyOptions, against: parseHead(head!) }), [])
          const kept = JSON.stringify([before.entries, await books.listAudit({ limit: 100 })], (_, value) =>
            typeof value === 'bigint' ? `${value}` : value,
          )
          assert.doesNotMatch(kept, /zzyzx/i)
          assert.deepEqual((await books.verifyAudit()).findings, [])
          await store.close()
        },
      ),
      { numRuns: runsUpTo(engine.name === 'SQLite' ? 15 : 4) },
    )
  })
})

test('Y21 of an erased person the file keeps nothing but the id, once the log has been merged', () => {
  const path = createPath()
  const store = openStore(path)
  for (let n = 0; n < 200; n++)
    store.change(
      createPerson(
        { name: `Qwertzu ${n}`, externalId: `Qwertzu-${n}`, email: `qwertzu${n}@x` },
        { nowMs: n, calendar },
      ),
    )
  store.change(updatePerson('Qwertzu-7', { name: 'Qwertzu seven, with a name that is longer' }, counting))
  store.change(linkPersons('Qwertzu-8', 'Qwertzu-9', counting))
  for (let n = 0; n < 200; n++) if (n !== 9) store.change(erasePerson(`Qwertzu-${n}`, 1_000))
  store.close()
  const text = readFileSync(path, 'latin1')
  assert.equal(text.match(/per_\w{16}/g)!.length >= 200, true)
  assert.doesNotMatch(text, /qwertzu/i)
})
