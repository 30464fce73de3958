import { isUtf8 } from 'node:buffer'
import { scanObject } from '../src/bytes/scan.ts'
import { formatCost, measureCost } from './micro.ts'
import { workloads } from './workloads.ts'

/*
 * Measures the scan of a body, beside the check of its UTF-8 and a whole parse. `node bin/node.mjs bench/json.bench.ts`
 */

for (const { name, bodies, wire, modelWire, answer, connections } of workloads) {
  // Other workloads have the same bodies.
  if (wire !== modelWire || answer !== 'short' || connections === 1 || connections === 8 || connections > 32) continue
  const bytes = Buffer.from(JSON.stringify(bodies[0]))
  measure(name, 'scanObject', bytes, () => scanObject(bytes).length)
  measure(name, 'isUtf8', bytes, () => Number(isUtf8(bytes)))
  measure(name, 'JSON.parse', bytes, () => Object.keys(JSON.parse(bytes.toString('utf8'))).length)
}

function measure(name: string, what: string, bytes: Buffer, run: () => number) {
  console.log(formatCost(`${name.padEnd(24)} ${what}`, measureCost(run), { count: bytes.length, unit: 'byte' }))
}
