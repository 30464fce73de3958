import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeRefusal } from '../../src/wires/answers/error-body.ts'

const checks = [
  { type: 'greater_than', loc: ['body', 'messages', 0, 'role'], msg: 'Input should be one of user, tool' },
  { type: 'missing', loc: ['body'], msg: 'Field required' },
  { nothing: 'to read' },
]
const words = 'messages.0.role: Input should be one of user, tool; Field required'

const bodies: [what: string, body: unknown, text: string][] = [
  ['FastAPI', { detail: checks }, words],
  ['FastAPI with a sentence', { detail: 'Method not known' }, 'Method not known'],
  [
    'Mistral',
    { object: 'error', message: { detail: checks }, type: 'invalid_request_message_error', code: null },
    words,
  ],
  ['a list of nothing that says anything', { detail: [{}, 1] }, ''],
]

for (const [what, body, text] of bodies)
  test(`U2 spec 7.4 what ${what} says of a request is told in words`, () => {
    assert.equal(decodeRefusal(422, JSON.stringify(body)).text, text)
  })
