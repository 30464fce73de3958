import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { type EventFrame, EventFrames } from '../../src/clouds/event-frames.ts'
import { framed, frameOf } from '../support/event-frames.ts'

/* `scripts/cloud-oracles.ts` compares 20,000 frames with the codec of AWS's SDK and with botocore. */

const plain = ({ headers, payload }: EventFrame) => ({
  headers: Object.fromEntries(headers),
  payload: payload.toString(),
})

function decode(pieces: readonly Buffer[]): { frames: ReturnType<typeof plain>[]; isWhole: boolean } {
  const decoder = new EventFrames()
  const frames = pieces.flatMap((piece) => [...decoder.push(piece)].map(plain))
  return { frames, isWhole: decoder.isWhole }
}

/** Written by @smithy/eventstream-codec 4.5.2: two headers of text, one of each other type, and a payload. */
const foreign = Buffer.from(
  'AAAAiQAAAGntutR2DTptZXNzYWdlLXR5cGUHAAVldmVudAFhAAFiAQFjAgEBZAMAAgFlBAAAAAMBZgUAAAAAAAAABQFnBgACAQIEdGV4dAcABcOp4pyTAWgIAAAA6NSlEAABaQkAESIzRFVmd4iZqrvM3e7/eyJieXRlcyI6ImUzMD0ifZSbJr4=',
  'base64',
)

test('clouds 2 a frame of the codec of AWS is read, with headers of every type', () => {
  assert.deepEqual(decode([foreign]), {
    frames: [{ headers: { ':message-type': 'event', text: 'é✓' }, payload: '{"bytes":"e30="}' }],
    isWhole: true,
  })
})

const texts = fc.dictionary(fc.string({ minLength: 1, maxLength: 20 }), fc.string({ maxLength: 300 }))

test('clouds 2 frames are the same wherever their bytes are cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(texts, fc.string({ maxLength: 500 })), { maxLength: 5 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (said, cuts) => {
        const bytes = Buffer.concat(said.map(([headers, payload]) => frameOf(headers, payload)))
        const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
        const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
        const expected = said.map(([headers, payload]) => ({ headers: { ...headers }, payload }))
        assert.deepEqual(decode(pieces), { frames: expected, isWhole: true })
      },
    ),
  )
  const two = Buffer.concat([foreign, foreign])
  for (let cut = 0; cut <= two.length; cut++)
    assert.equal(decode([two.subarray(0, cut), two.subarray(cut)]).frames.length, 2)
  assert.equal(decode([...two].map((byte) => Buffer.from([byte]))).frames.length, 2)
})

test('clouds 2 no frame with a flipped bit is delivered, and a cut one counts as incomplete', () => {
  for (let bit = 0; bit < foreign.length * 8; bit++) {
    const bytes = Buffer.from(foreign)
    bytes[bit >> 3]! ^= 1 << (bit & 7)
    assert.throws(() => decode([bytes]), `bit ${bit}`)
  }
  for (let length = 1; length < foreign.length; length++)
    assert.deepEqual(decode([foreign.subarray(0, length)]), { frames: [], isWhole: false })
})

test('clouds 2 lengths beyond the limits, and headers beyond their frame, are refused', () => {
  const payload = Buffer.alloc(0)
  const bad = [
    frameOf({}, Buffer.alloc(1_048_577)),
    framed(Buffer.from([5, 97]), payload),
    framed(Buffer.from([1, 97]), payload),
    framed(Buffer.from([1, 97, 10]), payload),
    framed(Buffer.from([1, 97, 7, 0]), payload),
    framed(Buffer.from([1, 97, 7, 0, 2, 98]), payload),
    framed(Buffer.from([1, 97, 5, 0]), payload),
  ]
  for (const [index, frame] of bad.entries()) assert.throws(() => decode([frame]), `${index}`)
})
