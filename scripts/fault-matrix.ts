/**
 * Runs the fault matrix: every row of docs/faults.md about one machine, for each pair of wires to which it applies.
 * Each cell checks the client, the ledger and the log. Most cells are tests in test/faults, whose titles name the row.
 * Faults that need a separate disk are tried by scripts with the same checks. Prints a table. Fails if a cell fails, or
 * if a row has no cell.
 *
 *     node bin/node.mjs scripts/fault-matrix.ts [rows, such as F-U9 F-S2; default: all]
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const columns = ['messages', 'chat', 'responses', 'messages→chat', 'any'] as const
const wanted = process.argv.slice(2)

/** The result of a cell. */
type Result = { row: string; way: string; isGood: boolean; why?: string }

/** Rows that a script tries, on a server with a separate disk. They need the programs in `needs`. */
const scripts: { rows: string[]; command: string[]; needs: string[] }[] = [
  { rows: ['F-S2'], command: ['scripts/full-disk.ts', '1'], needs: ['unshare', 'mount'] },
  { rows: ['F-S3'], command: ['scripts/full-disk.ts', '1', 'syncs'], needs: ['unshare', 'mount', 'strace'] },
  { rows: ['F-S4'], command: ['scripts/full-disk.ts', '1', 'writes'], needs: ['unshare', 'mount', 'strace'] },
  { rows: ['F-P1'], command: ['scripts/kill-gateway.ts', '15'], needs: [] },
  { rows: ['F-S3', 'F-S6'], command: ['scripts/power-cut.ts', '8'], needs: ['cc'] },
]

const started = performance.now()
const rows = readRows()
const results = [...runCells(), ...runScripts()]
printTable(results)

/** Returns the rows of the page, except rows of PostgreSQL, which test/replicas has, and rows that are not built. */
function readRows(): string[] {
  const page = readFileSync(join(root, 'docs/faults.md'), 'utf8')
  const all = [...page.matchAll(/^\| (F-[CUPS]\d+) \| (.*)$/gm)]
  return all
    .filter(([, , text]) => !/^\*(PostgreSQL|not built)\*/.test(text!))
    .map(([, id]) => id!)
    .filter(isWanted)
}

function isWanted(row: string): boolean {
  return wanted.length === 0 || wanted.includes(row)
}

function hasRows(file: string): boolean {
  const text = readFileSync(join(root, file), 'utf8')
  return wanted.length === 0 ? text.includes("'F-") : wanted.some((row) => text.includes(`'${row}'`))
}

function runCells(): Result[] {
  const files = globSync('test/faults/*.test.ts', { cwd: root }).filter(hasRows)
  const folder = mkdtempSync(join(tmpdir(), 'triwire-matrix-'))
  const resolver = join(folder, 'resolv.conf')
  writeFileSync(resolver, 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n')
  const pattern = wanted.length === 0 ? [] : [`--test-name-pattern=^(${wanted.join('|')}) `]
  const command = [process.execPath, '--test', '--test-reporter=tap', '--test-timeout=120000', ...pattern]
  const env = { ...process.env, TRIWIRE_MATRIX: 'all', TRIWIRE_TEST_DIR: folder }
  const run = (file: string, ...before: string[]) => {
    const [program = '', ...args] = [...before, ...command, file]
    const isNames = before.length > 0
    const settings = { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28, timeout: 600_000 } as const
    return spawnSync(program, args, { ...settings, env: { ...env, ...(isNames && { TRIWIRE_NAMES: 'own' }) } })
  }
  const own = `ip link set lo up && mount --bind ${resolver} /etc/resolv.conf && exec "$@"`
  const results = files.flatMap((file) => {
    const isNames = file.endsWith('names.test.ts')
    if (isNames && !isWanted('F-U3')) return []
    if (isNames && missing(['unshare', 'ip', 'mount']).length > 0)
      return [absent('F-U3', missing(['unshare', 'ip', 'mount']))]
    const done = isNames ? run(file, 'unshare', '-rnm', 'sh', '-c', own, 'sh') : run(file)
    const cells = readTap(done.stdout)
    if (cells.length === 0 && wanted.length === 0) cells.push({ row: file, way: 'any', isGood: false, why: tell(done) })
    return cells
  })
  rmSync(folder, { recursive: true })
  return results
}

/** Reads results. A title is `F-U9 chat: …`. The message of a failure is on the lines after it, up to three dots. */
function readTap(text: string): Result[] {
  const lines = text.split('\n')
  return lines.flatMap((line, i) => {
    const match = /^(not )?ok \d+ - (F-[CUPS]\d+) (\S+): /.exec(line)
    if (!match || /# SKIP/.test(line)) return []
    const isGood = match[1] === undefined
    const why = isGood ? undefined : lines.slice(i + 1, lines.indexOf('  ...', i)).join('\n')
    return [{ row: match[2]!, way: match[3]!, isGood, ...(why !== undefined && { why: `${line}\n${why}` }) }]
  })
}

function runScripts(): Result[] {
  return scripts
    .filter(({ rows }) => rows.some(isWanted))
    .flatMap(({ rows, command, needs }) => {
      const lacks = missing(needs)
      if (lacks.length > 0) return rows.map((row) => absent(row, lacks))
      const settings = { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28, timeout: 600_000 } as const
      const done = spawnSync(process.execPath, command, settings)
      console.log(`${command.join(' ')}\n${done.stdout.replace(/^/gm, '  ')}`)
      return rows.map((row) => ({ row, way: 'any', isGood: done.status === 0, why: tell(done) }))
    })
}

function tell({ status, stdout, stderr }: SpawnSyncReturns<string>): string {
  return `ended with ${status}\n${stdout.slice(-2_000)}${stderr.slice(-2_000)}`
}

function missing(programs: readonly string[]): string[] {
  return programs.filter((name) => spawnSync('which', [name]).status !== 0)
}

function absent(row: string, programs: readonly string[]): Result {
  return { row, way: 'any', isGood: true, why: `not on this machine: no ${programs.join(', ')}` }
}

function printTable(results: readonly Result[]): void {
  console.log(`| row | ${columns.join(' | ')} |\n|---|${columns.map(() => '---|').join('')}`)
  let [good, bad] = [0, 0]
  const notes: string[] = []
  for (const row of [...rows, ...new Set(results.map(({ row }) => row).filter((row) => !row.startsWith('F-')))]) {
    const cells = results.filter((one) => one.row === row)
    const told = columns.map((way) => {
      const here = cells.filter((one) => one.way === way)
      if (here.length === 0) return '—'
      if (here.some(({ isGood }) => !isGood)) return 'FAIL'
      return here.find(({ why }) => why?.startsWith('not on'))?.why ?? 'pass'
    })
    if (cells.length === 0) notes.push(`${row}: no cell`)
    good += cells.filter(({ isGood }) => isGood).length
    bad += cells.filter(({ isGood }) => !isGood).length
    notes.push(...cells.filter(({ isGood }) => !isGood).map(({ why }) => `${row}\n${why}`))
    console.log(`| ${row} | ${told.join(' | ')} |`)
  }
  for (const note of notes) console.log(`\n${note}`)
  const minutes = ((performance.now() - started) / 60_000).toFixed(1)
  console.log(`\n${rows.length} rows, ${good + bad} cells: ${good} pass, ${bad} fail; ${minutes} min`)
  if (bad > 0 || notes.length > 0) process.exitCode = 1
}
