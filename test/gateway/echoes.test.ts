import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { withoutEchoes as search } from '../../src/gateway/echoes.ts'
import { Flow } from '../../src/gateway/fairness/places.ts'
import { runsUpTo } from '../support/runs.ts'

const withoutEchoes = (text: string, request: Buffer) => search(text, request, { searchable: Number.POSITIVE_INFINITY })

/** Forms in which a provider repeats a string of a request. */
const forms: Record<string, (text: string) => string> = {
  decoded: (text) => text,
  'as it stands in the JSON': (text) => JSON.stringify(text).slice(1, -1),
  'with its letters escaped': (text) =>
    JSON.stringify(text)
      .slice(1, -1)
      .replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'with its line breaks as blanks': (text) => text.replace(/[\p{Cc}\u2028\u2029]{1,1000}/gu, ' '),
}

const characters = fc.constantFrom(...'abcdefgh ', '\n', '\t', '"', '\\', 'é', '本', '😀', '  ')
const said = fc.array(characters, { minLength: 40, maxLength: 90 }).map((some) => some.join(''))

/** Whether a text has a run of 20 characters of the request, read in one of the forms. */
function repeats(shown: string, request: string): boolean {
  const ways = Object.values(forms).map((form) => form(request))
  return Array.from({ length: Math.max(0, shown.length - 19) }, (_, at) => shown.slice(at, at + 20)).some((run) =>
    ways.some((way) => way.includes(run)),
  )
}

test('CON-4 an error contains no run of 20 characters of the request, however its provider repeats it', () => {
  const property = fc.property(said, fc.nat(20), fc.integer({ min: 20, max: 60 }), (text, start, length) => {
    const request = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: text }] }))
    for (const [name, form] of Object.entries(forms)) {
      const shown = withoutEchoes(`Bad input (${form(text.slice(start, start + length))}): refused`, request)
      assert.ok(shown !== undefined && !repeats(shown, text), `${name}: ${shown}`)
    }
  })
  fc.assert(property, { numRuns: runsUpTo(300) })
})

test('CON-4 an error that repeats nothing, or less than 20 characters, stays unchanged', () => {
  const request = Buffer.from(JSON.stringify({ model: 'm', temperature: 9, content: 'canary-text of a client' }))
  for (const text of [
    'temperature must be at most 2, not 9',
    'GPU 3 is lost',
    '',
    'canary-text of a c is bad',
    'x'.repeat(400),
  ])
    assert.equal(withoutEchoes(text, request), text)
  assert.equal(withoutEchoes('Invalid: canary-text of a client. Try again', request), 'Invalid: …. Try again')
  assert.equal(withoutEchoes('canary-text of a client', request), '…')
})

test('CON-4 if a request is too large to be searched, text that may repeat it is removed', () => {
  const request = Buffer.from(JSON.stringify({ content: 'a'.repeat(270_000) }))
  assert.equal(withoutEchoes('GPU 3 of this machine is lost', request), undefined)
  assert.equal(withoutEchoes('GPU 3 is lost', request), 'GPU 3 is lost')
})

test('CON-4 JSON inside a string of a request is found decoded, and also with the quotes that Python prints', () => {
  const inner = JSON.stringify({ note: 'the patient said "I am well" today' }).replaceAll('patient', '\\u0070atient')
  const request = Buffer.from(JSON.stringify({ arguments: inner, say: "tell 'him' that all is well now" }))
  assert.equal(withoutEchoes('Bad: the patient said "I am well" today!', request), 'Bad: …!')
  assert.equal(withoutEchoes("Bad: tell \\'him\\' that all is well now!", request), 'Bad: …!')
})

test('CON-4 U11 a turn has a bound for searches, however many attempts fail, and later turns search again', () => {
  const flow = new Flow()
  const request = Buffer.from(JSON.stringify({ content: String.raw`a  \\"b\\"`.repeat(15_000) }))
  const text = String.raw`GPU 3 of this machine is  lost: \"x\"`
  const readings = () => {
    let count = 0
    while (search(text, request, flow) !== undefined) count++
    return count
  }
  const [first, second] = [readings(), readings()]
  assert.ok(first >= 1 && first <= 5, `${first}`)
  assert.equal(second, 0)
  // Short texts are compared with nothing.
  assert.equal(search('GPU 3 is lost', request, flow), 'GPU 3 is lost')
  let turns = 0
  while (search(text, request, flow) === undefined) {
    flow.tick(1)
    turns++
  }
  assert.ok(turns >= 1 && turns <= 4, `${turns}`)
  for (let turn = 0; turn < 100; turn++) flow.tick(1)
  assert.equal(readings(), first)
})
