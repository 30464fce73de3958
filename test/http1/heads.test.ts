import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import test from 'node:test'
import fc from 'fast-check'
import { framingOf, mayBecomeHead, readFields, readRequestHead } from '../../src/http1/heads.ts'
import { runsUpTo } from '../support/runs.ts'
import { readByNode } from './node-parser.ts'

/* What one reader takes for one request and another for another is how requests are smuggled: Node's parser is the other reader. */

const requestLines = [
  'GET / HTTP/1.1',
  'POST /v1/messages?beta=true HTTP/1.1',
  'OPTIONS * HTTP/1.1',
  'POST http://a.example/v1 HTTP/1.0',
  'M-SEARCH /%e9 HTTP/1.1',
]
const lines = [
  'host: x',
  'Host:y',
  'content-length: 3',
  'Content-Length: 0',
  'transfer-encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'connection: close',
  'x-a:',
  'x-b: \t two words \t',
  'x-c: caf\xe9',
  "!#$%&'*+-.^_`|~: 1",
]
const octets = fc.constantFrom(...'\r\n\t :;,\x00\x0b\x7f\xff/*aZ09', '\r\n', '\r\n ', 'HTTP/1.1')

/** A head and a mutation of it: some octets are changed, some are gone, some are new. */
const heads = fc
  .record({
    first: fc.constantFrom(...requestLines),
    lines: fc.array(fc.constantFrom(...lines), { maxLength: 6 }),
    edits: fc.array(fc.tuple(fc.nat(200), fc.nat(2), octets), { maxLength: 3 }),
  })
  .map(({ first, lines, edits }) =>
    edits.reduce(
      (text, [at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut),
      `${[first, ...lines].join('\r\n')}\r\n`,
    ),
  )

test('F-C13–F-C21 a request that is accepted is read by Node as the same request, with the same body', () => {
  let taken = 0
  const check = (text: string) => {
    const head = text.includes('\r\n\r\n') ? undefined : readRequestHead(text)
    const framing = head && framingOf(head.fields, head.minor)
    if (!head || typeof framing === 'object' || !METHODS.includes(head.method) || head.method === 'CONNECT') return
    // A tab after a value is not part of it (RFC 9110 5.5). Node does not recognise `chunked` before a tab, and refuses the body.
    if (framing === 'chunked' && /^transfer-encoding:.*\t\r$/im.test(text)) return
    taken++
    const other = readByNode(
      'request',
      Buffer.from(`${text}\r\n${framing === 'chunked' ? '1\r\na\r\n0\r\n\r\n' : 'abc'}`, 'latin1'),
    )
    const { method, target, minor, fields } = other.head!
    // Of the newest methods its list knows no names.
    assert.deepEqual([head.method, head.target, head.minor], [method ?? head.method, target, minor])
    assert.deepEqual([...head.fields.entries()], fields)
    const wanted = framing === 'chunked' ? 'a' : 'abc'.slice(0, framing ?? 0)
    assert.deepEqual(
      [other.body, other.isWhole],
      [wanted, framing === undefined || framing === 'chunked' || framing <= 3],
    )
  }
  fc.assert(fc.property(heads, check), { numRuns: runsUpTo(20_000) })
  assert.ok(taken > runsUpTo(1_000), `${taken} were taken`)
})

test('common heads of clients are accepted', () => {
  for (const first of requestLines)
    for (const line of lines) assert.ok(readRequestHead(`${first}\r\n${line}\r\n`), `${first} ${line}`)
})

test('a field is found by its name in any case, its values separate or joined', () => {
  const fields = readFields('X-Api-Key: a\r\nhost:  x \r\nx-api-key: b\r\nx-api-keys: c\r\n', 0)!
  assert.deepEqual([fields.count, fields.countOf('x-api-key'), fields.longestValue], [4, 2, 1])
  assert.deepEqual(
    [fields.get('x-api-key'), fields.first('x-api-key'), fields.all('x-api-key')],
    ['a, b', 'a', ['a', 'b']],
  )
  assert.deepEqual([fields.get('host'), fields.get('none'), fields.first('none')], ['x', undefined, undefined])
  assert.deepEqual(
    [...readFields('Host: x\r\nA:\r\n', 0)!.entries()],
    [
      ['host', 'x'],
      ['a', ''],
    ],
  )
  // A bit decides between cases of letters, and not of other characters.
  assert.equal(readFields('a^b: 1\r\n', 0)!.get('a~b'), undefined)
})

test('F-C28 bytes that cannot become a head are recognised early, and those that can are waited for, wherever they are cut', () => {
  fc.assert(
    fc.property(heads, fc.nat(300), (text, cut) => {
      if (readRequestHead(text))
        assert.equal(mayBecomeHead(text.slice(0, cut), 0), true, JSON.stringify(text.slice(0, cut)))
    }),
  )
  for (const bytes of [
    '{"a":1}',
    '\x16\x03',
    'hello',
    'GET\t/',
    'GET / HTTP/1.1\nh',
    'GET / HTTP/1.1\rh',
    'A'.repeat(30),
    ' ',
  ])
    assert.equal(mayBecomeHead(bytes, 0), false, bytes)
  assert.equal(mayBecomeHead('\r', 0), true)
  // Of what was looked at before only the last octet is looked at again.
  assert.equal(mayBecomeHead('GET / HTTP/1.1\r\na: b\nc', 21), false)
})
