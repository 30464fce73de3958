import { isUtf8 } from 'node:buffer'
import { scanObject } from '../src/bytes/json.ts'
import { workloads } from './workloads.ts'

/*
 * What the scan of a body costs, beside the check of its UTF-8 and a whole parse. `node bin/node.mjs bench/json.bench.ts`
 */

for (const { name, body, wire, modelWire, answer, connections } of workloads) {
  // Others have the same bodies.
  if (wire !== modelWire || answer !== 'short' || connections === 1 || connections === 8 || connections > 32) continue
  const bytes = Buffer.from(JSON.stringify(body))
  measure(name, 'scanObject', bytes, () => scanObject(bytes).length)
  measure(name, 'isUtf8', bytes, () => Number(isUtf8(bytes)))
  measure(name, 'JSON.parse', bytes, () => Object.keys(JSON.parse(bytes.toString('utf8'))).length)
}

/** The best of several rounds: the machine's other work only ever adds. */
function measure(name: string, what: string, bytes: Buffer, run: () => number) {
  const times = Math.max(5, Math.round(3_000_000 / bytes.length))
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 12; round++) {
    const start = process.hrtime.bigint()
    for (let i = 0; i < times; i++) run()
    best = Math.min(best, Number(process.hrtime.bigint() - start) / times)
  }
  const perByte = (best / bytes.length).toFixed(2)
  console.log(`${name.padEnd(24)} ${what.padEnd(12)} ${(best / 1_000).toFixed(1).padStart(9)} µs  ${perByte} ns/byte`)
}
