import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { decodeRefusal, faultOfError } from '../../src/wires/answers/faults.ts'

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
  ['a list of errors', { errors: [{ message: 'No such field' }, { message: 'and more' }] }, 'No such field'],
  ['a list of sentences', { errors: ['No such field'] }, 'No such field'],
  ['an error in an error', { error: { error: 'No such field' } }, 'No such field'],
  ['a short name', { code: 7, msg: 'No such field' }, 'No such field'],
  ['Baidu', { error_code: 336003, error_msg: 'No such field' }, 'No such field'],
  ['a long name', { error_message: 'No such field' }, 'No such field'],
  ['a problem object (RFC 9457) without a detail', { title: 'No such field', status: 422 }, 'No such field'],
  ['a text in place of a list of errors', { errors: 'No such field' }, 'No such field'],
  ['Rails', { errors: { foo: ['No such field', 'and more'] } }, 'No such field; and more'],
  [
    'NestJS',
    { statusCode: 422, message: ['No such field', 'and more'], error: 'Unprocessable Entity' },
    'No such field; and more',
  ],
  ['a list in place of an error', { error: ['No such field'] }, 'No such field'],
  ['OAuth', { error: 'invalid_request', error_description: 'No such field' }, 'No such field'],
  ['AWS', { __type: 'ValidationException', Message: 'No such field' }, 'No such field'],
  ['MiniMax', { base_resp: { status_code: 2013, status_msg: 'No such field' } }, 'No such field'],
  ['a description', { error: { description: 'No such field' } }, 'No such field'],
  ['details', { error: { code: 7, details: 'No such field' } }, 'No such field'],
  ['an object in an error', { error: { error: { message: 'No such field' } } }, 'No such field'],
  ['JSON that is one text', 'No such field', 'No such field'],
]

for (const [what, body, text] of bodies)
  test(`U2 spec 7.4 the error of ${what} about a request is returned as a sentence`, () => {
    assert.equal(decodeRefusal(422, JSON.stringify(body)).text, text)
  })

const texts: [what: string, body: string, text: string][] = [
  [
    'a sentence',
    'Failed to deserialize the JSON body: messages[0].role at line 1\n',
    'Failed to deserialize the JSON body: messages[0].role at line 1',
  ],
  ['a long text', 'é'.repeat(2_000), 'é'.repeat(1_000)],
  ['an event', 'data: {"error":{"message":"No such field"}}\n\n', 'No such field'],
  ['a named event', 'event: error\r\ndata:{"error":{"message":"No such field"}}\r\n\r\n', 'No such field'],
  ['a page', '<html><h1>400 Bad Request</h1><center>nginx</center></html>', ''],
  ['a page after blanks', '\n <!DOCTYPE html><p>no</p>', ''],
  ['XML', '<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>', ''],
  ['JSON that is cut', '{"error":{"message":"half a', ''],
  ['nothing', ' \n', ''],
]

for (const [what, body, text] of texts)
  test(`BUG-9 spec 7.4 the text of a refusal that is ${what} is read; that of an HTML page is not`, () => {
    assert.equal(decodeRefusal(400, body).text, text)
    if (!body.includes('data:')) assert.equal(decodeRefusal(404, body).text, '')
  })

test('U2 F-U26 the codes of a failed response that blame the request mean 400, as the vendor lists them', () => {
  const types = readFileSync('node_modules/openai/resources/responses/responses.d.ts', 'utf8')
  const list = /interface ResponseError \{[^}]*?code: ([^;]+);/.exec(types)![1]!
  const codes = list.split('|').map((one) => one.trim().slice(1, -1))
  // The other codes are about the server or the operator's account.
  const others = ['server_error', 'rate_limit_exceeded', 'data_residency_mismatch', 'vector_store_timeout']
  assert.deepEqual(
    codes.filter((code) => faultOfError({ code, message: 'No' }).status !== 400),
    others,
  )
})

test('B25 a refusal with very many blanks is read in linear time', () => {
  const beganMs = performance.now()
  for (const blank of [' ', '\n', ' \n'])
    assert.equal(decodeRefusal(400, `event:${blank.repeat(100_000)}x`).text.length, 1_000)
  // A search that is quadratic takes a minute.
  assert.ok(performance.now() - beganMs < 8_000)
})
