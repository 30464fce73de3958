/*
 * What the gateway costs: CPU per request and per streamed event, beside a bare pipe and nginx in the same run.
 *
 *     npm run bench -- [--quick] [--only <part of a name>] [--compare <commit or checkout>] [--write]
 *
 * `--compare` measures another state's gateway in the same run: the way to see what a change brings.
 * `--write` puts the page into bench/results. What is measured and how: bench/README.md.
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measure } from './measure.ts'
import { drawRatios, formatPage, formatTable, type Row } from './report.ts'
import { startBench } from './servers.ts'
import { workloads } from './workloads.ts'

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    compare: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const rounds = options.quick ? 3 : 5
const latencySeconds = options.quick ? 0 : 5

const bench = await startBench({ compare: options.compare })
const troubles: string[] = []
try {
  const rows: Row[] = []
  for (const workload of workloads.filter(({ name }) => name.includes(options.only))) {
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
