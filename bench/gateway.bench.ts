/*
 * Measures what the gateway costs: CPU per request and per streamed event, beside a bare pipe and nginx in the same
 * run. bench/README.md explains the method.
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { measure } from './measure.ts'
import { readOptions, refuse } from './options.ts'
import { drawRatios, formatPage, formatTable, type Row } from './report.ts'
import { startBench } from './servers.ts'
import { workloads } from './workloads.ts'

const usage = `npm run bench -- [options]

  --quick           three rounds instead of five, and no latencies
  --only TEXT       only the rows whose names contain TEXT, such as 'messages → chat'
  --compare REF     also measures the gateway of another commit or checkout, which shows the effect of a change
  --write           writes the page into bench/results`

const options = readOptions(usage, {
  quick: { type: 'boolean', default: false },
  only: { type: 'string', default: '' },
  compare: { type: 'string' },
  write: { type: 'boolean', default: false },
})
const chosen = workloads.filter(({ name }) => name.includes(options.only))
if (chosen.length === 0)
  refuse(`no row has '${options.only}' in its name: ${workloads.map(({ name }) => name).join('; ')}`, usage)
const rounds = options.quick ? 3 : 5
const latencySeconds = options.quick ? 0 : 5

const bench = await startBench({ compare: options.compare })
const troubles: string[] = []
try {
  const rows: Row[] = []
  for (const workload of chosen) {
    const figures = await measure(bench, workload, { rounds, latencySeconds, tell })
    rows.push({ workload, figures })
    console.error(formatTable(rows.slice(-1)))
  }
  const remarks = [...bench.notes, ...troubles]
  console.log(`\n${formatTable(rows)}\n\n${remarks.join('\n')}`)
  if (options.write) {
    const folder = join(import.meta.dirname, 'results')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'README.md'), formatPage(rows, rounds, remarks))
    writeFileSync(join(folder, 'ratios.svg'), drawRatios(rows))
  }
} finally {
  await bench.close()
}

function tell(trouble: string): void {
  troubles.push(trouble)
  console.error(trouble)
}
