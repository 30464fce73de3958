import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { readOpening } from '../../src/wires/requests/checks.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { readLikeness } from '../../src/wires/requests/likeness.ts'
import { wires } from '../../src/wires/wires.ts'

/*
 * Issue 48: what real agents send in a task of three turns, as `clients/openers.ts` has recorded it. Titles and other small work are
 * asked of another model.
 */

type Recording = { client: string; version: string; wire: ClientWire; requests: { model: string }[] }

const folder = join(import.meta.dirname, '../fixtures/agents')
const recordings = readdirSync(folder).map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Recording)

const openerOf = (wire: ClientWire, body: object, key = 'secret account-1') =>
  readLikeness(
    wires[wire].client,
    new ClientBody(Buffer.from(JSON.stringify(body))),
    createHash('sha256').update(key),
    1,
  ).opener

for (const { client, version, wire, requests } of recordings)
  test(`Y24 the conversation of ${client} ${version} on ${wire} has one opener, and its small work another`, () => {
    const [main, small] = [true, false].map((isMain) =>
      requests.filter(({ model }) => (model === `large-${wire}`) === isMain),
    ) as [Recording['requests'], Recording['requests']]
    assert.ok(main.length >= 3, `${main.length} turns are recorded`)
    const openers = new Set(main.map((body) => openerOf(wire, body)))
    assert.equal(openers.size, 1)
    for (const body of small) assert.ok(!openers.has(openerOf(wire, body)))
    // Without their names the turns differ, and so do they for another account.
    assert.equal(new Set(main.map((body) => JSON.stringify(body))).size, main.length)
    assert.ok(!openers.has(openerOf(wire, main[0]!, 'secret account-2')))
  })

test('Y24 the four agents are recorded on all of their wires', () => {
  const told = recordings.map(({ client, wire }) => `${client} ${wire}`).sort()
  const every = (client: string) => ['chat', 'messages', 'responses'].map((wire) => `${client} ${wire}`)
  assert.deepEqual(told, ['claude-code messages', 'codex responses', ...every('copilot'), ...every('opencode')].sort())
})

test('Y18 a cache mark of either name does not change the opening of a conversation', () => {
  const openingOf = (mark: object) => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' }, ...mark }
    const body = { messages: [{ role: 'user', content: [image] }] }
    return readOpening(wires.chat.client, new ClientBody(Buffer.from(JSON.stringify(body))))
  }
  for (const name of ['cache_control', 'prompt_cache_breakpoint'])
    assert.equal(openingOf({ [name]: { mode: 'explicit' } }), openingOf({}))
})
