import assert from 'node:assert/strict'
import test from 'node:test'
import { type Asked, checkAnswer } from './check-answer.ts'
import { messagesSchemas } from './messages.ts'
import type { Mode } from './mode.ts'
import { responsesSchemas } from './responses.ts'
import { type Json, type Sample, samples } from './samples.ts'

const sse = 'text/event-stream; charset=utf-8'

function check(sample: Sample, mode: Mode, body: Json = sample.body): string[] {
  const { asked, isEvent, status } = sample
  if (!isEvent) return checkAnswer(asked, mode, 'application/json', JSON.stringify(body), status)
  const name = asked === 'chat' ? '' : `event: ${body['type']}\n`
  return checkAnswer(asked, mode, sse, `${name}data: ${JSON.stringify(body)}\n\n`)
}

/** Every object and array in a body, with its path. */
function* placesOf(value: unknown, path: string[] = []): Iterable<string[]> {
  if (typeof value !== 'object' || value === null) return
  yield path
  for (const [key, member] of Object.entries(value)) yield* placesOf(member, [...path, key])
}

function broken(body: Json, path: string[], change: (place: Json) => void): Json {
  const copy = structuredClone(body)
  change(path.reduce((place, key) => place[key], copy))
  return copy
}

/** No key holds one of these rightly beside what stands in the samples. */
function wrongFor(value: unknown): unknown {
  return typeof value === 'number' ? 'five' : typeof value === 'boolean' ? 'yes' : -1.5
}

for (const [number, sample] of samples.entries()) {
  const { asked, body, open = [], optional = [] } = sample
  const name = `${asked} ${number} ${body['type'] ?? body['object'] ?? ''}`
  const objects = [...placesOf(body)].filter((path) => !open.includes(path.join('.')))

  test(`T12 spec 2 spec 6 spec 7.1 ${name} is valid, and is not without a key, with another type or with an additional key`, () => {
    assert.deepEqual(check(sample, 'translated'), [])
    assert.deepEqual(check(sample, 'native'), [])
    for (const path of objects) {
      const place: Json = path.reduce((at, key) => at[key], body)
      for (const key of Object.keys(place)) {
        const at = [...path, key].join('.')
        const wrong = broken(body, path, (place) => {
          place[key] = wrongFor(place[key])
        })
        assert.notDeepEqual(check(sample, 'translated', wrong), [], `${at} of another type`)
        if (Array.isArray(place) || optional.includes(at)) continue
        const less = broken(body, path, (place) => {
          delete place[key]
        })
        assert.notDeepEqual(check(sample, 'translated', less), [], `without ${at}`)
      }
      if (Array.isArray(place)) continue
      const more = broken(body, path, (place) => {
        place['vendor_extra'] = 1
      })
      assert.notDeepEqual(check(sample, 'translated', more), [], `more in ${path.join('.')}`)
    }
  })
}

test('P2 additions of a provider pass on its own wire, but not in our own errors and lists', () => {
  for (const sample of samples) {
    const isOurs = sample.status !== undefined || sample.asked === 'models' || sample.asked === 'count_tokens'
    if (isOurs || sample.body['error']) assert.notDeepEqual(check(sample, 'native', { ...sample.body, more: 1 }), [])
    else assert.deepEqual(check(sample, 'native', { ...sample.body, more: 1 }), [])
  }
})

/** What the specification names and no provider may leave out. */
const demanded: [Asked, string[]][] = [
  ['messages', ['id', 'type', 'role', 'model', 'content', 'stop_reason', 'stop_sequence', 'usage']],
  ['chat', ['id', 'object', 'created', 'model', 'choices', 'usage']],
  ['responses', ['id', 'object', 'created_at', 'status', 'error', 'incomplete_details', 'model', 'output', 'store']],
]
for (const [asked, keys] of demanded) {
  test(`spec 2 P2 a native ${asked} answer has every key of the specification`, () => {
    const sample = samples.find((sample) => sample.asked === asked && !sample.isEvent)!
    for (const key of keys) {
      const { [key]: _, ...less } = sample.body
      assert.notDeepEqual(check(sample, 'native', less), [], key)
    }
  })
}

test('spec 7.2 spec 7.3 an error has the type and code of its status', () => {
  const chat = samples.find((sample) => sample.asked === 'chat' && sample.status === 429)!
  const messages = samples.find((sample) => sample.asked === 'messages' && sample.status === 429)!
  for (const sample of [chat, messages]) assert.notDeepEqual(check({ ...sample, status: 400 }, 'native'), [])
  const { error } = chat.body
  assert.notDeepEqual(check(chat, 'native', { error: { ...error, type: 'api_error' } }), [])
  // An envelope with 200, and an answer with an error's status.
  assert.notDeepEqual(check({ ...chat, status: 200 }, 'native'), [])
  const answer = samples.find((sample) => sample.asked === 'chat' && sample.status === undefined)!
  assert.notDeepEqual(check({ ...answer, status: 500 }, 'native'), [])
})

test('T10 spec 2.2 a signature on translated thinking, and words in a start event, are refused', () => {
  const [whole] = samples
  const signed = { ...whole!.body, content: [{ type: 'thinking', thinking: 'hm', signature: 'c2lnbmVk' }] }
  assert.notDeepEqual(check(whole!, 'translated', signed), [])
  assert.deepEqual(check(whole!, 'native', signed), [])
  const start = samples.find(({ body }) => body['type'] === 'content_block_start')!
  assert.notDeepEqual(check(start, 'translated', { ...start.body, content_block: { type: 'text', text: 'Hi' } }), [])
})

test('T12 an event unknown to all SDKs is refused, and passes from a provider; an event’s name is its type', () => {
  const frame = 'event: ping\ndata: {"type":"ping"}\n\n'
  assert.deepEqual(checkAnswer('responses', 'translated', sse, frame), ['unknown event ping'])
  assert.deepEqual(checkAnswer('responses', 'native', sse, frame), [])
  assert.deepEqual(checkAnswer('messages', 'native', sse, 'data: {"type":"ping"}\n\n'), [
    'event undefined carries type ping',
  ])
})

test('spec 2.1 a body that is not JSON, an invalid frame and a foreign content type are refused', () => {
  assert.deepEqual(checkAnswer('chat', 'native', 'application/json', '<html>'), ['not JSON: <html>'])
  assert.deepEqual(checkAnswer('chat', 'native', sse, 'data: {"id":\n\n'), ['not JSON: {"id":'])
  assert.deepEqual(checkAnswer('chat', 'native', 'text/html', ''), ['a body of type text/html'])
  // What stands behind the last blank line was cut off, and is no event.
  assert.deepEqual(checkAnswer('chat', 'native', sse, ': ping\n\ndata: [DONE]\n\ndata: {"id":'), [])
})

test('T12 every event that has a schema has a sample', () => {
  const types = new Set(samples.filter(({ isEvent }) => isEvent).map(({ body }) => body['type']))
  const known = [messagesSchemas('translated'), responsesSchemas('translated')].flatMap(({ events }) =>
    Object.keys(events),
  )
  assert.deepEqual(
    known.filter((type) => !types.has(type)),
    [],
  )
  assert.equal(known.length, 27)
})
