import { estimateTextTokens } from '../src/inference/estimate.ts'
import { estimateBytesTokens } from '../src/inference/estimate-bytes.ts'
import { readSamples } from '../test/inference/samples.ts'

/*
 * What the token estimates cost. `node bin/node.mjs bench/estimate.bench.ts`
 */

const mixed = readSamples()
  .filter((sample) => sample.kind !== 'languages')
  .map((sample) => sample.text)
  .join('')
const ascii = Buffer.from(mixed.replace(/[^\x00-\x7f]/g, '')).toString('latin1')
const image = Buffer.concat([
  Buffer.from('89504e470d0a1a0a0000000d494844520000040000000300', 'hex'),
  Buffer.alloc(750_000, 7),
])

for (const chars of [1_000, 60_000, 1_000_000]) {
  const text = Buffer.from(ascii.slice(0, chars)).toString('latin1')
  const body = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: text }] }))
  measure(`text, ${chars} characters`, chars, () => estimateTextTokens(text))
  measure(`body, ${body.length} bytes`, body.length, () => estimateBytesTokens(body))
}
const body = Buffer.from(JSON.stringify({ data: image.toString('base64') }))
measure(`body with an image, ${body.length} bytes`, body.length, () => estimateBytesTokens(body))
for (const unit of ['a', 'aB', ' ', '-', '漢', "don't "]) {
  const text = unit.repeat(200_000)
  measure(`"${unit}" over and over`, text.length, () => estimateTextTokens(text))
}

/** The best of several rounds: the machine's other work only ever adds. */
function measure(name: string, size: number, run: () => number) {
  const times = Math.max(3, Math.round(3_000_000 / size))
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 12; round++) {
    const start = process.hrtime.bigint()
    for (let i = 0; i < times; i++) run()
    best = Math.min(best, Number(process.hrtime.bigint() - start) / times)
  }
  console.log(
    `${name.padEnd(36)} ${(best / size).toFixed(2).padStart(6)} ns each ${(best / 1_000).toFixed(1).padStart(9)} µs`,
  )
}
