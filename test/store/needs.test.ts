import assert from 'node:assert/strict'
import test from 'node:test'
import { needKeptMs } from '../../src/accounts/warnings.ts'
import { onEachStore } from './engines.ts'

const noon = Date.parse('2026-11-22T12:00:00Z')
const need = (id: string) => ({ id, data: { need: id, text: `about ${id}` } })

onEachStore((engine) => {
  async function open() {
    const store = await engine.open({ atMs: noon })
    /** All that is due, each taken and over. */
    const told = async (from = store) => {
      const warnings = await from.takeWarnings(60_000, 100)
      for (const { id } of warnings) await from.settleWarning(id, undefined)
      return warnings.map(({ event, data }) => `${event} ${data['need']}`)
    }
    return { store, told }
  }

  test('CON-P3 a line is announced once: not again by another server, after a restart, or while it comes and goes', async () => {
    const { store, told } = await open()
    assert.deepEqual(
      await store.noteNeeds([need('a'), need('b')], true),
      new Map([
        ['a', noon],
        ['b', noon],
      ]),
    )
    assert.deepEqual((await told()).toSorted(), ['needs_changed a', 'needs_changed b'])
    await store.turn(noon + 60_000)
    const other = await store.beside()
    assert.deepEqual(
      await other.noteNeeds([need('a'), need('c')], true),
      new Map([
        ['a', noon],
        ['c', noon + 60_000],
      ]),
    )
    assert.deepEqual(await told(), ['needs_changed c'])
    // The other server does not see what this one sees, and both look in turns for longer than a line is kept.
    for (let at = 2; at < 200; at++) {
      await store.turn(noon + at * 60_000)
      await (at % 2 ? store : other).noteNeeds(at % 2 ? [need('a'), need('b')] : [need('a'), need('c')], true)
    }
    assert.deepEqual(await told(), [])
    // Nobody looks while all servers are stopped.
    await store.turn(noon + 50 * needKeptMs)
    const opened = await store.reopen()
    assert.deepEqual(await opened.noteNeeds([need('a')], true), new Map([['a', noon]]))
    assert.deepEqual(await told(opened), [])
  })

  test('CON-P3 a line that was absent for an hour is a new one, and is announced again', async () => {
    const { store, told } = await open()
    await store.noteNeeds([need('a')], true)
    await store.noteNeeds([], true)
    await told()
    await store.turn(noon + needKeptMs)
    await store.noteNeeds([need('a')], true)
    assert.deepEqual(await told(), [])
    await store.noteNeeds([], true)
    const laterMs = noon + 2 * needKeptMs + 1
    await store.turn(laterMs)
    assert.deepEqual(await store.noteNeeds([need('a')], true), new Map([['a', laterMs]]))
    assert.deepEqual(await told(), ['needs_changed a'])
  })

  test('Y21 the name of an erased person does not stay in a message that waits for a webhook', async () => {
    const { store, told } = await open()
    await store.createAccount('one')
    const [ada, bob] = [await store.createPerson({ name: 'Ada' }), await store.createPerson({ name: 'Bob' })]
    await store.noteNeeds(
      [ada, bob].map(({ id }) => need(`person_budget_spent:${id}:0`)),
      true,
    )
    await store.erasePerson(ada.id)
    assert.deepEqual(await told(), [`needs_changed person_budget_spent:${bob.id}:0`])
  })

  test('CON-P3 lines that a server noticed without a webhook are announced once a webhook is configured', async () => {
    const { store, told } = await open()
    await store.noteNeeds([need('a')], false)
    assert.deepEqual(await told(), [])
    await store.noteNeeds([need('a')], true)
    await store.noteNeeds([need('a')], true)
    assert.deepEqual(await told(), ['needs_changed a'])
  })
})
