import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { walkBody } from '../../scripts/fuzz-bodies.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { accumulate } from './clients.ts'
import { pump, pumpJson, wires } from './pump.ts'

/** What a fuzzer once made fail is played again for ever. */

const folder = new URL('seeds/', import.meta.url)
const names = readdirSync(folder).filter((name) => /^(answer|body)-/.test(name))

test('the folder has seeds', () => assert.ok(names.length > 0))

for (const name of names) {
  const [kind, wire] = name.split('-') as [string, ClientWire]
  const bytes = readFileSync(new URL(name, folder))
  if (kind === 'body') {
    test(`R9 the body of seed ${name} is forwarded or refused`, () => {
      assert.match(walkBody(wire, bytes), /^(sent|refused)$/)
    })
  } else {
    for (const client of Object.keys(wires) as ClientWire[]) {
      test(`TP3 the answer of seed ${name} obeys the grammar of a ${client} client`, () => {
        const script = bytes.toString('utf8')
        for (const showsReasoning of [true, false]) {
          const told = name.endsWith('.json')
            ? pumpJson(client, wire, script, { showsReasoning })
            : pump(client, wire, script, { showsReasoning })
          assert.deepEqual(wires[client].check(told.text), [])
          assert.notEqual(told.outcome, 'none')
          if (told.json !== undefined) assert.deepEqual(accumulate(client, told.text), JSON.parse(told.json))
        }
      })
    }
  }
}
