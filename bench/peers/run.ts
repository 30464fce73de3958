/*
 * Measures our gateway beside those of other projects. All get the same requests and the same upstream. Each runs on
 * one core, in turns, in a network namespace with only the loopback (docs/benchmarks.md, bench/README.md).
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readOptions, refuse } from '../options.ts'
import { peersHome } from './home.ts'
import { install } from './install.ts'
import { measurePeers } from './measure.ts'
import { formatRun, putIntoPage, type Run } from './page.ts'
import { peers } from './peers.ts'

const usage = `npm run bench:peers -- [options]

  --setup           installs the peers, once
  --only PEER,…     only some of ${peers.map(({ name }) => name).join(', ')}
  --rows TEXT       only the rows whose names contain TEXT
  --seconds N       the length of a measurement (3)
  --heat N          the longest warm-up before the first measurement, in seconds (20)
  --rounds N        the number of measurements of each server (3)
  --quick           half a second, one second of warm-up, one round
  --write           writes the results of a run of all peers and rows into docs/benchmarks.md
  --again           writes the results of the last such run, without another one`

const options = readOptions(usage, {
  setup: { type: 'boolean', default: false },
  only: { type: 'string', default: '' },
  rows: { type: 'string', default: '' },
  quick: { type: 'boolean', default: false },
  seconds: { type: 'string', default: '3' },
  heat: { type: 'string', default: '20' },
  rounds: { type: 'string', default: '3' },
  write: { type: 'boolean', default: false },
  again: { type: 'boolean', default: false },
})
const cutVariable = 'TRIWIRE_PEERS_OFFLINE'
const kept = join(peersHome, 'last-run.json')
const page = join(import.meta.dirname, '../../docs/benchmarks.md')
const chosen = peers.filter(({ name }) => options.only === '' || options.only.split(',').includes(name))
if (chosen.length === 0) refuse(`there is no peer ${options.only}`, usage)

if (options.setup) setUp()
else if (options.again) write(JSON.parse(readFileSync(kept, 'utf8')) as Run)
else if (process.env[cutVariable] !== '1') process.exitCode = runCut()
else await run()

function setUp(): void {
  mkdirSync(peersHome, { recursive: true })
  const told = chosen.map((peer) => `${peer.name}: ${install(peer) ?? `${peer.source.version} is installed`}`)
  console.log(`\n${told.join('\n')}\n\nin ${peersHome}`)
}

/** Runs this script again in a network namespace of its own. Some peers listen on every address, and some would send data home. */
function runCut(): number {
  const script = 'ip link set lo up && exec "$0" "$@"'
  const own = [process.execPath, import.meta.filename, ...process.argv.slice(2)]
  // A process namespace, too: if the run breaks off, everything that it has started ends with it.
  const spaces = ['--user', '--map-root-user', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']
  const cut = [...spaces, 'sh', '-c', script, ...own]
  const env = { ...process.env, [cutVariable]: '1' }
  const { status, error } = spawnSync('unshare', cut, { stdio: 'inherit', env })
  if (error) throw new Error(`peers need a network namespace of their own (unshare): ${error.message}`)
  return status ?? 1
}

async function run(): Promise<void> {
  mkdirSync(peersHome, { recursive: true })
  const isWhole = options.only === '' && options.rows === ''
  if (options.write && !isWhole) throw new Error('--write is for a run of all peers and rows')
  const [takes, heat, rounds] = options.quick
    ? [0.5, 1, 1]
    : [options.seconds, options.heat, options.rounds].map(Number)
  const limits = { take: takes!, heat: heat! }
  // Results are written after each row, so that they are not lost if a long run fails.
  const keep = (told: Run) => isWhole && writeFileSync(kept, JSON.stringify(told))
  const told = await measurePeers(chosen, { rows: options.rows, limits, rounds: rounds!, keep })
  console.log(`\n${formatRun(told)}`)
  if (options.write) write(told)
}

/** @throws if the pipes have no figure for a row: then the run itself has failed, and not a peer */
function write(told: Run): void {
  const failed = told.rows.filter(({ name }) =>
    told.servers.some(({ isPipe, cells }) => isPipe && typeof cells[name] !== 'object'),
  )
  if (failed.length > 0) throw new Error(`the page is unchanged: ${failed.map(({ name }) => name).join('; ')} failed`)
  writeFileSync(page, putIntoPage(readFileSync(page, 'utf8'), formatRun(told)))
}
