/*
 * What the gateway costs: CPU per request and per streamed event, next to a bare pipe and to nginx in the same run.
 *
 *     node bin/node.mjs bench/gateway.bench.ts [--quick] [--only <part of a name>] [--write] [--against <checkout>]
 *
 * `--against` measures another checkout's gateway in the same run: the way to see what a change brings.
 * `--write` puts the table into bench/results.md. What is measured and how: bench/README.md.
 */

import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { putLoad } from './load.ts'
import { requestOf } from './request.ts'
import { readCpu, startBench, type TestedServer } from './servers.ts'
import { unitsOf, type Workload, workloads } from './workloads.ts'

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    against: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const rounds = options.quick ? 3 : 5

type Figures = { usAll: number; usMain: number }

const bench = await startBench(options.against)
try {
  const chosen = workloads.filter((workload) => workload.name.includes(options.only))
  const rows: string[][] = []
  for (const workload of chosen) {
    const figures = await measure(workload)
    rows.push(rowOf(workload, figures))
    console.error(rows[rows.length - 1]!.join('  '))
  }
  const table = formatTable(rows)
  console.log(`\n${table}\n${bench.notes.join('\n')}`)
  if (options.write) writeFileSync(join(import.meta.dirname, 'results.md'), page(table))
} finally {
  await bench.close()
}

/** The median of several rounds, the servers taking turns, after one round to warm up. */
async function measure(workload: Workload): Promise<Map<TestedServer['name'], Figures>> {
  const samples = new Map<TestedServer['name'], Figures[]>()
  for (let round = -1; round < rounds; round++) {
    for (const server of bench.servers) {
      const load = { port: server.port, request: requestOf(workload, server), ...sizeOf(workload) }
      const before = readCpu(server.pid)
      await putLoad(load)
      const after = readCpu(server.pid)
      const units = load.connections * load.requestsEach * unitsOf(workload) * 1_000
      const figures = { usAll: (after.allNs - before.allNs) / units, usMain: (after.mainNs - before.mainNs) / units }
      if (round >= 0) samples.set(server.name, [...(samples.get(server.name) ?? []), figures])
    }
  }
  return new Map(
    [...samples].map(([name, list]) => [
      name,
      { usAll: median(list.map((one) => one.usAll)), usMain: median(list.map((one) => one.usMain)) },
    ]),
  )
}

function sizeOf({ connections, requestsEach }: Workload): { connections: number; requestsEach: number } {
  return { connections, requestsEach: options.quick ? Math.max(1, Math.round(requestsEach / 3)) : requestsEach }
}

function median(list: number[]): number {
  const sorted = list.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

function rowOf(workload: Workload, figures: Map<TestedServer['name'], Figures>): string[] {
  const nginx = figures.get('nginx')
  const bare = figures.get('bare')!
  const gateway = figures.get('gateway')!
  const before = figures.get('before')
  return [
    workload.name,
    workload.unit,
    nginx ? nginx.usAll.toFixed(1) : '-',
    bare.usAll.toFixed(1),
    `${gateway.usAll.toFixed(1)} (${gateway.usMain.toFixed(1)})`,
    nginx ? `${(bare.usAll / nginx.usAll).toFixed(2)}×` : '-',
    `${(gateway.usAll / bare.usAll).toFixed(2)}×`,
    nginx ? `${(gateway.usAll / nginx.usAll).toFixed(2)}×` : '-',
    ...(before ? [`${before.usAll.toFixed(1)} (${before.usMain.toFixed(1)})`] : []),
  ]
}

function formatTable(rows: string[][]): string {
  const header = [
    'workload',
    'unit',
    'nginx',
    'bare pipe',
    'gateway (main thread)',
    'bare ÷ nginx',
    'gateway ÷ bare',
    'gateway ÷ nginx',
    ...(options.against ? ['before (main thread)'] : []),
  ]
  const widths = header.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)))
  const line = (cells: string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(' | ')} |`
  return [line(header), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n')
}

function page(table: string): string {
  return `# What the gateway costs

Written by \`node bin/node.mjs bench/gateway.bench.ts --write\` on a ${cpus().length}-core VM with Node ${process.versions.node.replace(/\.\d+$/, '')}.
µs of CPU (user and system, all threads) per unit; medians of ${rounds} rounds in which the servers took turns. The
figures drift with the machine: the ratios are what counts. How it is measured: [README.md](README.md).

${table}
${bench.notes.map((note) => `\n${note}\n`).join('')}`
}
