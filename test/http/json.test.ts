import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import {
  isJsonObject,
  JsonError,
  type KeptKeys,
  keptPlace,
  type Note,
  outlineOf,
  scanObject,
} from '../../src/bytes/scan.ts'
import { findPlainMedia } from '../../src/inference/estimate-media.ts'
import { runsUpTo } from '../support/runs.ts'

// biome-ignore format: cases in rows
const values = [
  '0', '-0', '1', '-1', '10', '1.5', '-1.5', '0.1', '1e5', '1E5', '1e+5', '1e-5', '1.5e5', '0e1', '0E+0', '-0.0',
  '123456789012345678901234567890', '1e400', '-1e400', '9007199254740993', '0.000000000000000000000000001', '""',
  '"a"', '"\\""', '"\\\\"', '"\\/"', '"\\b\\f\\n\\r\\t"', '"\\u0000"', '"\\u00e9"', '"\\uD83D\\ude00"', '"\\ud800"',
  '"\\udc00\\ud800"', '"\\u2028\\u2029"', '"\u2028"', '"é"', '"😀"', '"\u007f"', '"\u0080"', '"\ufffe"', '"\uffff"',
  '"\ufeff"',
  '"/*no comment*/"', '"{"', '"]"', '","', '":"', '"\\\\\\""', '"\\uABCD\\uabcd"', `"${'a'.repeat(1_000)}"`,
  `"${'é'.repeat(500)}\\n${'b'.repeat(600)}"`, '"\u{10ffff}"', '"nulltrue"', 'true', 'false', 'null', '[]', '[ ]',
  '[[]]', '[1]', '[1,2]', '[ 1 , 2 ]', '[null,[true]]', '[{}]', '[[[[[1]]]]]', '{}', '{ }', '{"a":{}}',
  '{"a":{"a":{"a":[]}}}', '[[],{},[],{}]', '{"":0}', '{"a":1,"a":2}', '[""]', '[0,-0,1e1]',
  '"\\u007F"', '["a",1,true,null,{},[]]', '1E-2', '"\\uFFFF"', '[" "]',
]
// biome-ignore format: cases in rows
const wholes = [
  '{}',
  ' {}', '{} ', '\n\t\r {\n\t\r }\n\t\r ', '{"":1}', '{"a":1,"a":1}', '{"a":1,"b":2}', '{ "a" : 1 , "b" : 2 }',
  '{"__proto__":1}', '{"constructor":{"prototype":{}}}', '{"toString":1}', '{"\\u0061":1}', '{"\\u0000":1}',
  '{"é":1}', `${'{"a":'.repeat(127)}{}${'}'.repeat(127)}`, `{"a":${'['.repeat(127)}${']'.repeat(127)}}`,
  `{"a":[${'1,'.repeat(9_999)}1]}`, `{${Array.from({ length: 1_000 }, (_, i) => `"k${i}":${i}`).join()}}`,
  `{${' '.repeat(5_000)}}`, '{"a":"\\u0022}"}',
]

const accepted = [...values.map((value) => `{"k":${value}}`), ...wholes]

// biome-ignore format: cases in rows
const badNumbers = [
  '+1', '01', '-01', '00', '1.', '.5', '-.5', '1.e5', '1e', '1e+', '1E-', '1e1.5', '1.5.5', '--1', '-', '+', '0x1',
  '0b1', '0o7', '1_000', '1,000.5x', 'NaN', '-NaN', 'Infinity', '-Infinity', '1a', '1 2', '0.', '-0.', '1ee1',
  '1e1e1', '١', '1\u00a0', '2.e3', '2.e+3', '0e', '0e+', '0.e1', '-1x', '1+2', '0.3e+', '0x42', '1-1', '9.e+',
  '-foo', '- 1', '1\x00',
]
// biome-ignore format: cases in rows
const badStrings = [
  '"', '"a', "'a'", '`a`', '"\\', '"\\"', '"\\a"', '"\\x00"', '"\\u"',
  '"\\u0"', '"\\u00"', '"\\u000"', '"\\u00g0"', '"\\u 000"', '"\\U0041"', '"\\0"', '"\\\'"', '"\\v"', '"\\e"',
  '"a\nb"', '"a\tb"', '"a\rb"', '"a\x00b"', '"\x1f"', '"\x01"', '"a" "b"', '"a"b', 'a', 'abc', '"\\u{41}"',
  '"\\\n"', '"\\ "', '"\\u+041"', `"${'x'.repeat(500)}\x02"`, `"${'x'.repeat(500)}`,
  `"${'x'.repeat(300)}\\q"`, '“a”', '"\\ud83d\\u00"', '"\\u12', '"\\u1234', '"\\🌀"', '"é', '"\\\x00"',
]
// biome-ignore format: cases in rows
const badWords = [
  'True', 'FALSE', 'Null', 'tru', 'truee', 'nul', 'nulll', 'fals', 'falsey', 'undefined',
  'None', 'nil', 'yes', 'true false', 't', 'f', 'n', 'true1', 'null"', 'nan', 'inf', '', ' ', '/', '//', '/**/',
  '#', '@', '$', '&', '?', '*', '\\', '\u00a0', '\u200b',
]
// biome-ignore format: cases in rows
const badArrays = [
  '[', '[1', '[1,', '[1,]', '[,]',
  '[,1]', '[1,,2]', '[1 2]', '[1;2]', '[1:2]', '["a":1]', '[]]', '[[]', '[}', '[1}', '[1,}', '[a]', '[1,a]', '[1]1',
  '[][]', '[1,\n1\n,1', '[""', '["a', '[1,[2]', '[1]]', '[/**/]', '[1//\n]', '[-]', '[.]', '[,', '[\x0b]', '[\x0c]',
]
// biome-ignore format: cases in rows
const badObjects = [
  '{', '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', '{,}', '{,"a":1}', '{"a" 1}',
  '{"a"::1}', '{"a",1}', '{"a":1 "b":2}', '{a:1}', "{'a':1}", '{1:1}', '{null:1}', '{"a":1,,"b":2}',
  '{"a":1;"b":2}', '{"a":}', '{:1}', '{[]:1}', '{{}}', '{"a":1}}', '{"a":1]', '{"a":1/**/}', '{/**/"a":1}',
  '{"a"/**/:1}', '{"a":1//\n}', '{"a":1#\n}', '{"a":1,"b"}', '{"a","b"}', '{"a":"b":"c"}', '{"a":1}{}', '{"a":1},',
  '{"a":1};', '{"a":1}x', '{"a":1}"', '{"a":1} 1', '{"a":1}\x00', '{"a":1}\u00a0', '{"a":1}\u2028', '{"a\nb":1}',
  '{"\\x":1}', '\x0b{"a":1}', '\x0c{"a":1}', '\u00a0{"a":1}', '\u2060{"a":1}', '\ufeff{"a":1}', '({"a":1})',
  '{"a":(1)}', '{…}', '{"a":1}🙂', '{]', '{"a":1)',
]
// biome-ignore format: cases in rows
const notObjects = [
  '', ' ', '\n', 'null', 'true', 'false',
  '0', '1', '-1.5', '"x"', '""', '[]', '[{}]', '[{"model":"x"}]', '[1]', 'x', '\x00', '{}{}',
]

const bytesOf = (text: string) => Buffer.from(text)
const badBytes: Record<string, Buffer> = {
  'a lone continuation byte': Buffer.from('{"k":"\x80"}', 'latin1'),
  'Latin-1': Buffer.from('{"k":"\xe9"}', 'latin1'),
  'a cut sequence': Buffer.from('{"k":"\xe2\x82"}', 'latin1'),
  'an overlong slash': Buffer.from('{"k":"\xc0\xaf"}', 'latin1'),
  'an overlong of three bytes': Buffer.from('{"k":"\xe0\x80\xaf"}', 'latin1'),
  'a surrogate in UTF-8': Buffer.from('{"k":"\xed\xa0\x80"}', 'latin1'),
  'beyond U+10FFFF': Buffer.from('{"k":"\xf4\x90\x80\x80"}', 'latin1'),
  'five bytes': Buffer.from('{"k":"\xf8\x88\x80\x80\x80"}', 'latin1'),
  '0xff': Buffer.from('{"k":"\xff"}', 'latin1'),
  'a bad byte in a key': Buffer.from('{"\xff":1}', 'latin1'),
  'a bad byte behind the end': Buffer.from('{"k":1}\xff', 'latin1'),
  'UTF-16 little endian': Buffer.from('{"k":1}', 'utf16le'),
  'UTF-16 with its mark': Buffer.from('\ufeff{"k":1}', 'utf16le'),
  'UTF-16 big endian': Buffer.from('{"k":1}', 'utf16le').swap16(),
}

const refused = [
  ...[...badNumbers, ...badStrings, ...badWords, ...badArrays, ...badObjects].map((value) => bytesOf(`{"k":${value}}`)),
  ...[...badObjects, ...notObjects].map(bytesOf),
  ...Object.values(badBytes),
]

test('F-C33 reliability §8 a text that is JSON, and an object, is accepted', () => {
  assert.ok(accepted.length >= 95, String(accepted.length))
  for (const text of accepted) {
    const members = scanObject(bytesOf(text))
    const parsed = JSON.parse(text) as object
    assert.deepEqual(new Set(members.map(({ key }) => key)), new Set(Object.keys(parsed)), text.slice(0, 80))
    for (const { start, end } of members) JSON.parse(bytesOf(text).toString('utf8', start, end))
  }
})

test('F-C32, F-C33 reliability §8 a text that is not JSON, or not an object, is refused in our own words', () => {
  assert.ok(refused.length >= 188, String(refused.length))
  for (const bytes of refused) {
    assert.throws(
      () => scanObject(bytes),
      (error) => error instanceof JsonError && /^(is not|is nested|has more)[ A-Za-z0-9-]+$/.test(error.message),
      JSON.stringify(bytes.toString('latin1').slice(0, 80)),
    )
  }
})

test('F-C34 depth over 128 and more than 150,000 tokens are refused', () => {
  const tooDeep = [`${'{"a":'.repeat(128)}{}${'}'.repeat(128)}`, `{"a":${'['.repeat(128)}${']'.repeat(128)}}`]
  for (const text of tooDeep) assert.throws(() => scanObject(bytesOf(text)), /nested deeper than 128 levels/)
  assert.throws(() => scanObject(bytesOf(`{"a":[${'0,'.repeat(150_000)}0]}`)), /more than 150000 JSON tokens/)
})

/** What the platform says: strict UTF-8, then its own parser. */
function isObjectText(bytes: Uint8Array): boolean {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

function isTaken(bytes: Uint8Array): boolean {
  try {
    scanObject(bytes)
    return true
  } catch (error) {
    assert.ok(error instanceof JsonError)
    return false
  }
}

const pieces = fc.constantFrom(
  ...'{}[]",:\\ \n\t0123456789.-+eEtrufalsn\x00\x1f',
  '\\u',
  '\\ud83d',
  'é',
  '😀',
  '\ufeff',
  'null',
  '"":',
  '/*',
)
const seeds = fc.constantFrom(...accepted.map(bytesOf).filter(({ length }) => length < 400), ...refused)

test('F-C33 over mutated texts, a text is accepted exactly if a strict decoder and JSON.parse accept it', () => {
  const mutation = fc.record({
    at: fc.nat(400),
    cut: fc.nat(3),
    piece: fc.oneof(pieces.map(bytesOf), fc.uint8Array({ maxLength: 2 })),
  })
  const mutated = fc.tuple(seeds, fc.array(mutation, { maxLength: 4 })).map(([seed, mutations]) => {
    let bytes: Uint8Array = seed
    for (const { at, cut, piece } of mutations) {
      const place = at % (bytes.length + 1)
      bytes = Buffer.concat([bytes.subarray(0, place), piece, bytes.subarray(place + cut)])
    }
    return bytes
  })
  fc.assert(
    fc.property(mutated, (bytes) => {
      assert.equal(isTaken(bytes), isObjectText(bytes))
    }),
    { numRuns: runsUpTo(20_000), seed: 7 },
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const bytes = bytesOf(`{"k":${parts.join('')}}`)
      assert.equal(isTaken(bytes), isObjectText(bytes))
    }),
    { numRuns: runsUpTo(20_000), seed: 7 },
  )
})

test('R-ARGS a text is one JSON object if a scan accepts it, whatever its length', () => {
  const isScanned = (text: string) => isTaken(bytesOf(text)) && /^[ \t\n\r]*\{/.test(text)
  const texts = [...accepted, ...refused.map((bytes) => bytes.toString())]
  const nested = [126, 127, 128, 129].map((depth) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`)
  for (const text of [...texts, ...nested, '{"a":"\ud83d"}', '{"a":1,"a":2}', '{"__proto__":1}'])
    for (const padded of [
      text,
      text + ' '.repeat(256),
      text.replace('{', `{${' '.repeat(Math.max(0, 256 - text.length))}`),
    ])
      assert.equal(isJsonObject(padded), isScanned(padded), padded.slice(0, 80))
})

test('spec 7.3 a special byte of a string is seen at any position among its neighbours', () => {
  for (const special of ['"', '\\', '\n', '\x00', '\x1f', '\\n', '\\u00e9', ' ', '\x7f', 'é', '\u{10ffff}']) {
    for (let before = 0; before < 9; before++) {
      for (let behind = 0; behind < 6; behind++) {
        const text = `{"k":"${'a'.repeat(before)}${special}${'!'.repeat(behind)}"}`
        for (let offset = 0; offset < 4; offset++) {
          const bytes = Buffer.from('#'.repeat(offset) + text).subarray(offset)
          assert.equal(isTaken(bytes), isObjectText(bytes), text)
        }
      }
    }
  }
})

test('spec 7.3 a string is accepted exactly if JSON.parse accepts it, however its escapes follow each other', () => {
  const escapes = ['\\n', '\\"', '\\\\', '\\/', '\\b', '\\f', '\\r', '\\t', '\\u00e9', '\\u4e2d']
  const wrong = ['\\', '\\x', '\\u00', '\\u00eg', '"', '\n', '\x00']
  const plain = ['a', 'é', '漢', 'u', 'n', '0041', 'x'.repeat(15), 'y'.repeat(16)]
  const piece = fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom(...escapes) },
    { weight: 10, arbitrary: fc.constantFrom(...plain) },
    { weight: 1, arbitrary: fc.constantFrom(...wrong) },
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (parts) => {
      const bytes = bytesOf(`{"k":"${parts.join('')}","z":1}`)
      assert.equal(isTaken(bytes), isObjectText(bytes))
    }),
    { numRuns: runsUpTo(20_000), seed: 7, examples: [[Array(40).fill('\\\\')], [Array(40).fill('\\u4e2d')]] },
  )
})

test('F-C35 reliability §3 more than 10,000 fields in one object are refused before they are all counted', () => {
  const object = (fields: number) => Buffer.from(`{${Array.from({ length: fields }, (_, i) => `"k${i}":0`).join(',')}}`)
  assert.equal(scanObject(object(10_000)).length, 10_000)
  assert.throws(() => scanObject(object(10_001)), new JsonError('has more than 10000 fields in one object'))
})

test('a scan reports which of the noted words are whole strings of a body, and only those', () => {
  const noted = (text: string) => {
    const notes = new Set<Note>()
    scanObject(Buffer.from(text), undefined, { notes })
    return [...notes].sort()
  }
  assert.deepEqual(noted('{"a":[{"role":"developer"},{"thinking":""}],"type":"reasoning"}'), [
    'developer',
    'reasoning',
    'thinking',
  ])
  assert.deepEqual(noted('{"thinking":1}'), ['thinking'])
  assert.deepEqual(noted('{"a":{"b":["x","developer"]}}'), ['developer'])
  for (const text of ['"developers"', '"a developer"', '"Developer"', '"say \\"developer\\""', '"assistant"'])
    assert.deepEqual(noted(`{"a":${text}}`), [], text)
  assert.deepEqual(noted('{"a":"\\u0064eveloper"}'), ['escaped letter'])
})

test('C14 a scan notes escaped ASCII letters, digits and signs, except those that HTML-safe writers escape', () => {
  for (let code = 0; code < 0x200; code++) {
    for (const hex of [code.toString(16), code.toString(16).toUpperCase()]) {
      const notes = new Set<Note>()
      scanObject(Buffer.from(`{"a":["\\u${hex.padStart(4, '0')}"]}`), undefined, { notes })
      const isTelling = code >= 0x20 && code < 0x7f && !'"&\'<>'.includes(String.fromCharCode(code))
      assert.deepEqual([...notes], isTelling ? ['escaped letter'] : [], hex)
    }
  }
})

test('C2 C14 a scan notes every string that the estimate may count as a data URL', () => {
  const noted = (text: string) => {
    const notes = new Set<Note>()
    scanObject(Buffer.from(text), undefined, { notes })
    return notes.has('data:…')
  }
  for (const text of ['{"data:a":1}', '{"a":["dAtA:image/svg+xml,%3C"]}', '{"a":{"b":"DATA:,"}}'])
    assert.ok(noted(text), text)
  for (const text of ['{"a":"data"}', '{"a":"a data:image/gif,%20"}', '{"data":"x"}', '{"a":"dat","b":":"}'])
    assert.ok(!noted(text), text)
  const piece = fc.constantFrom('data:image/svg+xml,%3C', 'DATA:IMAGE/gif,%20', 'data:', 'x', '\\"', '"', ':', ',', 'é')
  const said = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''))
  fc.assert(
    fc.property(fc.dictionary(said, fc.oneof(said, fc.array(said), fc.jsonValue()), { minKeys: 1 }), (value) => {
      const text = JSON.stringify(value)
      if (findPlainMedia(Buffer.from(text)).length > 0) assert.ok(noted(text), text)
    }),
  )
})

test('B25 F-C33 the remains of an earlier, longer text are not read after a shorter one', () => {
  const text = '{"a":[1,-2.5e3,true,false,null,"b\\n\\u00e9"],"c":{"d":"0123456789abcdef0123456789abcdef"},"e":12}'
  for (let length = 0; length <= text.length; length++) {
    scanObject(bytesOf(text))
    assert.equal(isTaken(bytesOf(text.slice(0, length))), length === text.length, text.slice(0, length))
  }
})

/** Asked in turn: what was wanted before is not wanted any more. */
// The ninth key of eleven and the longest there may be are found as well as the first.
const others = Array.from({ length: 8 }, (_, i) => `k${i}`)
const longest = 'want'.repeat(8).slice(0, 30)
const wantedKeys: readonly KeptKeys[] = [
  { containers: ['want'], texts: [] },
  { containers: ['want', 'b', 'in'], texts: ['want', longest], textBytesMin: 3 },
  { containers: [], texts: [] },
  { containers: [...others, 'b', longest], texts: ['in', 'want'], textBytesMin: 5 },
]

test('F-C33 a key is read from its own bytes, whatever keys were read before', () => {
  const characters = fc.constantFrom('a', 'b', '\\', 'u0061', '"', 'é', '\u00c3', '\u00a9', 'n', '😀', '')
  const key = fc.oneof(
    fc.array(characters, { maxLength: 6 }).map((parts) => parts.join('')),
    fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 28, maxLength: 36 }),
  )
  const written = key.chain((text) => {
    const escaped = JSON.stringify(text).replaceAll('a', '\\u0061')
    return fc.constantFrom(JSON.stringify(text), escaped)
  })
  fc.assert(
    fc.property(fc.array(written, { minLength: 1, maxLength: 8 }), (keys) => {
      const read = scanObject(Buffer.from(`{${keys.map((one) => `${one}:0`).join()}}`)).map((member) => member.key)
      assert.deepEqual(
        read,
        keys.map((one) => JSON.parse(one)),
      )
    }),
    { numRuns: runsUpTo(2_000) },
  )
  // The first one's text is the second one's source, and of so many some have the same place among the kept ones.
  for (let i = 0; i < 1_000; i++)
    for (const key of [`"\\\\n${i}\\\\n"`, `"\\n${i}\\n"`])
      assert.equal(scanObject(Buffer.from(`{${key}:0}`))[0]!.key, JSON.parse(key))
})

test('a scan lists the members of the object that it inspects, and the values of wanted keys outside of such an object', () => {
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(0, true, null, 'x', '\\"}]', '', 'xyz', 'é'),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('in', 'want', 'a"', '\u0069n', 'é', longest), tie('value'), {
        maxKeys: 4,
        noNullPrototype: true,
      }),
    ),
  })).value
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom('in', 'want', 'b', longest), json, { noNullPrototype: true }),
      fc.constantFrom(0, 1),
      fc.constantFrom(...wantedKeys),
      (object, space, keys) => {
        const text = JSON.stringify(object, undefined, space)
        const bytes = bytesOf(text)
        const found: { start: number; end: number }[] = []
        const members = scanObject(bytes, undefined, { inside: 'in', keys, found })
        assert.deepEqual(
          found.map(({ start, end }) => JSON.parse(bytes.toString('utf8', start, end))),
          wantedIn(object, keys),
        )
        // From the memory of this scan, and by another one.
        for (const scanned of [members, []]) {
          const { text, ranges } = outlineOf(bytes, keys, scanned)
          assert.deepEqual(ranges, found)
          let place = 0
          const filled = text.replaceAll(/"\u007fk[^"]*"/g, (token) => {
            assert.equal(keptPlace(JSON.parse(token)), place)
            const { start, end } = ranges[place++]!
            return bytes.toString('utf8', start, end)
          })
          assert.deepEqual([filled, place], [bytes.toString(), found.length])
        }
        for (const { key, start, end, members: inner } of members) {
          const value = (object as Record<string, unknown>)[key]
          assert.deepEqual(JSON.parse(bytes.toString('utf8', start, end)), value)
          const isLooked = key === 'in' && typeof value === 'object' && value !== null && !Array.isArray(value)
          assert.deepEqual(
            inner?.map((member) => [member.key, JSON.parse(bytes.toString('utf8', member.start, member.end))]),
            isLooked ? Object.entries(value) : undefined,
          )
        }
      },
    ),
    { numRuns: runsUpTo(2_000) },
  )

  /** Objects and arrays under the wanted keys, outermost ones only, in order. */
  function wantedIn(value: unknown, keys: KeptKeys): unknown[] {
    if (typeof value !== 'object' || value === null) return []
    return Object.entries(value).flatMap(([key, inner]) =>
      !Array.isArray(value) && isWanted(key, inner, keys) ? [inner] : wantedIn(inner, keys),
    )
  }

  function isWanted(key: string, value: unknown, { containers, texts, textBytesMin = 0 }: KeptKeys): boolean {
    if (typeof value === 'string')
      return texts.includes(key) && Buffer.byteLength(JSON.stringify(value)) >= textBytesMin
    return containers.includes(key) && typeof value === 'object' && value !== null
  }
})

test('a scan inspects an object whose key is written with an escape, and not another value of that key', () => {
  const inside = (text: string) =>
    scanObject(bytesOf(text), undefined, { inside: 'in' }).map(({ members }) => members?.length)
  assert.deepEqual(inside('{"\\u0069n":{"a":1,"b":[{"c":2}]},"\\u0069m":{"a":1},"in":{}}'), [2, undefined, 0])
  assert.deepEqual(inside('{"in":{"a":1},"in":2,"in":[{"a":1}]}'), [1, undefined, undefined])
})

test('an answer may have more members than the memory of its text holds', () => {
  const count = 300_000
  const text = bytesOf(`{${Array.from({ length: count }, () => '"":0').join()}}`)
  const members = scanObject(text, { tokensMax: Number.POSITIVE_INFINITY, membersMax: Number.POSITIVE_INFINITY })
  assert.equal(members.length, count)
  assert.deepEqual(members.at(-1), { key: '', keyStart: text.length - 5, start: text.length - 2, end: text.length - 1 })
})

test('a text of many megabytes is scanned, and a small one after it', () => {
  const long = bytesOf(`{"a":"${'\\n'.repeat(3_000_000)}","b":{}}`)
  assert.deepEqual(
    scanObject(long).map(({ key, end }) => [key, end]),
    [
      ['a', 6_000_007],
      ['b', 6_000_014],
    ],
  )
  assert.deepEqual(scanObject(bytesOf('{"a":1}')), [{ key: 'a', keyStart: 1, start: 5, end: 6 }])
})

test('C14 a scan notes an ending exactly where a byte search finds it followed by a quote', () => {
  const endings = ['mcp', 'shell', 'computer'] as const
  const pieces = ['mcp', 'shell', 'computer', 'local_', 'm', 'c', 'p', 'l', '"', '\\', ' ', 'é', 'x'.repeat(300)]
  const string = fc.array(fc.constantFrom(...pieces), { maxLength: 4 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.dictionary(string, fc.oneof(string, fc.array(string), fc.dictionary(string, string))), (value) => {
      const bytes = Buffer.from(JSON.stringify(value))
      const notes = new Set<Note>()
      scanObject(bytes, undefined, { notes })
      const found = endings.filter((ending) => bytes.includes(`${ending}"`)).map((ending) => `…${ending}` as const)
      assert.deepEqual([...notes].sort(), found.sort())
    }),
    { numRuns: runsUpTo(2_000) },
  )
})
