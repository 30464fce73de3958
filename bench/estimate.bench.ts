import { estimateBytesTokens, estimateTextTokens } from '../src/inference/estimate.ts'
import { readSamples } from '../test/inference/samples.ts'
import { formatCost, measureCost } from './micro.ts'

/* Measures the cost of the token estimates. `node bin/node.mjs bench/estimate.bench.ts` */

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

function measure(name: string, size: number, run: () => number) {
  console.log(formatCost(name, measureCost(run), { count: size, unit: 'character' }))
}
