import assert from 'node:assert/strict'
import test from 'node:test'
import { accumulate } from './clients.ts'
import { framesOf } from './grammar.ts'
import { type Arrival, type ClientWire, type Options, pump, pumpJson, type Told, wires } from './pump.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into JSON it has just checked.
export type Json = Record<string, any>

/** One row of the table of cases (translation 5.2): an upstream's script and what the client must get. */
export type Case = {
  id: string
  /** What the client must see, as a sentence. */
  says: string
  upstream: ClientWire
  client: ClientWire
  script: string
  options?: Options
  arrival?: Arrival
  /** The script is one JSON body and not a stream. */
  isJson?: boolean
  /** Members that the whole answer must have. */
  answer?: Json
  /** The fault that the answer must end with. */
  fault?: Json
  check?: (told: Told, answer: Json) => void
}

/** One test for each case: the stream at once, byte by byte and as a whole JSON answer, each against the grammar. */
export function testCases(cases: readonly Case[]): void {
  for (const row of cases) test(`${row.id} ${row.says}`, () => runCase(row))
}

function runCase(row: Case): void {
  const { client, upstream, script, options = {}, arrival = {} } = row
  const told = row.isJson
    ? pumpJson(client, upstream, script, options)
    : pump(client, upstream, script, options, arrival)
  if (!row.isJson) {
    const slowly = pump(client, upstream, script, options, { ...arrival, cut: 'bytes' })
    assert.equal(slowly.text, told.text, 'byte by byte')
  }
  assert.deepEqual(wires[client].check(told.text), [], told.text)
  // Case A120: nothing of the upstream's own names is seen, whatever happens.
  assert.doesNotMatch(told.text + (told.json ?? ''), /hosted/)

  if (row.fault) {
    assert.ok(typeof told.outcome === 'object' && 'fault' in told.outcome, 'the answer must fail')
    assert.deepEqual(pick(told.outcome.fault, row.fault), row.fault)
    assert.equal(told.json, undefined)
    row.check?.(told, {})
    return
  }
  assert.ok(told.json !== undefined, `the answer failed: ${JSON.stringify(told.outcome)}`)
  const answer: Json = JSON.parse(told.json)
  // Case A119: the whole answer is what a client makes of the stream.
  assert.deepEqual(accumulate(client, told.text), answer)
  assert.equal(answer['model'], 'catalog/model')
  if (row.answer) assert.deepEqual(pick(answer, row.answer), row.answer)
  row.check?.(told, answer)
}

/** The members of a value that are named by another, so that a case states only what it is about. */
function pick(value: unknown, shape: unknown): unknown {
  if (typeof shape !== 'object' || shape === null || typeof value !== 'object' || value === null) return value
  if (Array.isArray(shape))
    return Array.isArray(value) ? value.map((item, i) => pick(item, (shape as unknown[])[i])) : value
  return Object.fromEntries(Object.keys(shape).map((key) => [key, pick((value as Json)[key], (shape as Json)[key])]))
}

/** The stream in short: event names, or for chat what each delta holds. */
export function outline(told: Pick<Told, 'text'>): string[] {
  return framesOf(told.text).map(({ event, data }) => {
    if (event !== undefined) return event
    if (data === '[DONE]') return data
    const chunk: Json = JSON.parse(data)
    if (chunk['error']) return 'error'
    const choice = chunk['choices'][0]
    if (!choice) return 'usage'
    const isSaid = (value: unknown) => value !== null && (value as { length: number }).length > 0
    const keys = Object.keys(choice['delta']).filter((key) => isSaid(choice['delta'][key]))
    return choice['finish_reason'] ?? keys.join('+')
  })
}

/** The data of the stream's frames, parsed, the end mark left out. */
export function dataOf(told: Told): Json[] {
  return framesOf(told.text).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data)]))
}
