import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Adapter } from '../src/adapter.ts'
import { levels } from '../src/case.ts'
import { countCases, type Report } from '../src/report.ts'

/*
 * Runs all adapters, one after the other, and writes a page for each and the table of all:
 *
 *     node conformance/results/run.ts            # or the names of some adapters; the pages of others stay
 *     node conformance/results/run.ts --table    # runs nothing, and writes the table again from what is kept
 */

const here = import.meta.dirname
const names = process.argv.slice(2)
const isTableOnly = names.includes('--table')
const rows: string[] = []
const absent: string[] = []
const started = Date.now()

const adapters = readdirSync(join(here, '../adapters'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
for (const { name } of adapters.sort((a, b) => (a.name < b.name ? -1 : 1))) {
  const { default: adapter } = (await import(`../adapters/${name}/adapter.ts`)) as { default: Adapter }
  const kept = join(here, `${name}.json`)
  const found = isTableOnly && existsSync(kept) ? { version: 'as it is kept' } : await adapter.find()
  if ('missing' in found) {
    absent.push(`| ${linkTo(adapter.title, adapter.homepage)} | ${found.missing} |`)
    continue
  }
  if (names.length === 0 || names.includes(name)) {
    const folder = mkdtempSync(join(tmpdir(), 'bothsides-results-'))
    const words = [join(here, '../bin/bothsides.mjs'), 'run', '--adapter', name, '--out', folder]
    const { status, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', maxBuffer: 1 << 28 })
    console.log(`${name}: ${status === 0 || status === 1 ? 'ran' : stripVTControlCharacters(stderr).trim()}`)
    if (status === 0 || status === 1) {
      copyFileSync(join(folder, 'results.md'), join(here, `${name}.md`))
      const { gateway, day, node, seconds, results } = JSON.parse(
        readFileSync(join(folder, 'results.json'), 'utf8'),
      ) as Report
      const counts = Object.fromEntries(levels.map((level) => [level, countCases(results, level)]))
      for (const { case: id, pair, verdict, differences } of results) {
        const isLate = differences.some((line) => line.includes('"late"'))
        if (verdict === 'flaky' || isLate) console.log(`  ${verdict}${isLate ? ', late' : ''}: ${id} ${pair}`)
      }
      const summary = { gateway, day, node, seconds, expansions: results.length, counts }
      writeFileSync(kept, `${JSON.stringify(summary, null, 2)}\n`)
    }
    rmSync(folder, { recursive: true, force: true })
  }
  rows.push(rowOf(name, JSON.parse(readFileSync(kept, 'utf8')) as Summary, adapter))
}

type Summary = Pick<Report, 'gateway' | 'day' | 'node' | 'seconds'> & {
  expansions: number
  counts: Record<string, Record<string, number>>
}

function rowOf(name: string, { gateway, day, seconds, counts }: Summary, { homepage }: Adapter): string {
  const cells = ['MUST', 'SHOULD'].map((level) => {
    const { pass = 0, fail = 0, flaky = 0, refused = 0, deviation = 0, unsupported = 0 } = counts[level] ?? {}
    return `${pass} | ${fail} | ${flaky} | ${refused} | ${deviation} | ${unsupported}`
  })
  return `| ${linkTo(gateway.name, homepage)} | ${gateway.version} | ${cells.join(' | ')} | [${day}, ${seconds} s](${name}.md) |`
}

const page = `# Results

Written by \`node conformance/results/run.ts\`. A case counts once, by its worst pair. "n/a": the gateway has no such pair or feature,
or the adapter does not switch it on. Each page says what was switched on, has the tables of pairs and areas, and lists what failed.
A figure here is no grade: gateways differ in what they are for.

A case that fails is tried again. It counts as failed if both tries say the same, and as flaky if they do not. A run with a flaky
case, or with one that met its time limit, names it on the terminal, so that a busy machine makes no verdict unseen.
[clauses.md](clauses.md) says which sections the cases cite, and what was read.

| Gateway | Version | MUST pass | fail | flaky | refused | declared | n/a | SHOULD pass | fail | flaky | refused | declared | n/a | Run |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}

## Not run

| Gateway | Reason |
|---|---|
${absent.join('\n')}

What [public checkers](public-checkers.md) of one endpoint say is a page of its own.
`
writeFileSync(join(here, 'README.md'), page)
console.log(`all in ${Math.round((Date.now() - started) / 1_000)} s`)

function linkTo(name: string, homepage: string | undefined): string {
  return homepage === undefined ? name : `[${name}](${homepage})`
}
