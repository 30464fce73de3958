/**
 * Runs several real gateways on a real PostgreSQL, with faults that they must survive. Limits are shared, replicas are
 * killed, and the database is killed, frozen or disconnected. Keys and credit change meanwhile, and versions and clocks
 * differ.
 *
 *     node bin/node.mjs scripts/replicas.ts [--whole] [--only 'name;name…'] [--kills N] [--seed N] [--report file]
 *
 * Without options it runs the part for `npm run check` (at most five minutes). `--whole` runs the nightly part.
 * `--kills` sets the number of kills when a month begins, so that a large number can be divided among several runs. The
 * seed decides the moments of the kills.
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { createRandom } from '../src/store/seeded-random.ts'
import { findPostgres } from '../test/support/postgres.ts'
import { archives } from './replicas/archives.ts'
import { changes } from './replicas/changes.ts'
import { database } from './replicas/database.ts'
import { deaths } from './replicas/deaths.ts'
import { limits } from './replicas/limits.ts'
import { lockedRows } from './replicas/locked-rows.ts'
import { monthTurns } from './replicas/month-turn.ts'
import type { Finding, Trial } from './replicas/report.ts'
import { createSetting } from './replicas/setting.ts'
import { several } from './replicas/several.ts'

const { values: options } = parseArgs({
  options: {
    whole: { type: 'boolean', default: false },
    only: { type: 'string' },
    kills: { type: 'string' },
    seed: { type: 'string', default: '1' },
    report: { type: 'string' },
  },
})

if (!findPostgres()) {
  console.error('LEFT OUT: no PostgreSQL is installed (apt-get install postgresql): nothing is shown of replicas')
  process.exit(process.env['TRIWIRE_TEST_POSTGRES'] === '1' ? 1 : 0)
}

const all: readonly Trial[] = [
  ...limits,
  ...deaths,
  ...monthTurns,
  ...database,
  ...lockedRows,
  ...changes,
  ...several,
  ...archives,
]
const wanted = options.only?.split(';')
const unknown = wanted?.filter((name) => !all.some((trial) => trial.name === name))
if (unknown?.length) {
  console.error(`no trial is named ${unknown.join(', ')}; there are: ${all.map(({ name }) => name).join('; ')}`)
  process.exit(2)
}

const size = options.whole ? 'whole' : 'small'
const course = {
  kills: options.kills === undefined ? undefined : Number(options.kills),
  random: createRandom(Number(options.seed)),
}
const lines: string[] = []
for (const trial of all) {
  if (wanted && !wanted.includes(trial.name)) continue
  if (trial.isNightly && size === 'small' && !wanted) continue
  const begunMs = performance.now()
  const findings = await tryOne(trial)
  const seconds = ((performance.now() - begunMs) / 1_000).toFixed(1)
  const isOk = findings.every(({ ok }) => ok)
  if (!isOk) process.exitCode = 1
  const line = [
    `${isOk ? 'ok  ' : 'FAIL'} ${trial.name} (${seconds} s): ${trial.demand}`,
    ...findings.map(({ ok, text }) => `       ${ok ? 'ok  ' : 'FAIL'} ${text}`),
  ].join('\n')
  console.log(line)
  lines.push(line)
}
if (options.report) writeFileSync(options.report, `${lines.join('\n')}\n`)

async function tryOne(trial: Trial): Promise<Finding[]> {
  const setting = await createSetting(trial.options)
  try {
    return await trial.run(setting, size, course)
  } catch (error) {
    return [{ ok: false, text: `broke off: ${(error as Error).stack}` }]
  } finally {
    await setting.close()
  }
}
