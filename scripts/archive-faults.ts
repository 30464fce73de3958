/*
 * Archives a month while something fails, on both stores. Each try begins with a copy of the same store. After each
 * fault, `verify` must find nothing, a debit and a credit of the month must be known, and then the command must work.
 *
 * - `kills`: the command is killed (kill -9) before or after each of its statements.
 * - `crashes`: PostgreSQL is killed at each statement of the command.
 * - `disk`: export, detach and attach run on a disk with little space, and then with more, until the command succeeds.
 *   A command that fails must leave no part of a file. SQLite's store and the file share the disk. PostgreSQL has its
 *   own disk, which needs root.
 *
 *     node bin/node.mjs scripts/archive-faults.ts [kills|crashes|disk] [sqlite|postgres] [every nth statement]
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { priceNanos } from '../src/catalog/model.ts'
import { readKeptList } from '../src/config/list-text.ts'
import { readStorePlace } from '../src/config/store-place.ts'
import { attachMonth, detachMonth, exportMonth } from '../src/store/archive/archive.ts'
import { openArchiveStore } from '../src/store/archive/open-end.ts'
import { type Postgres, startPostgres } from '../test/support/postgres.ts'
import { type Filled, fill, month, openFile, openUrl, reopen, start, type Trial, verify } from './archive/trial.ts'

const size = { months: 2, perMonth: 2_500, accounts: 7 }
/** The size of PostgreSQL's disk, in MB. It suffices for its files, two copies of a database, and the log. */
const diskMb = 400
/** Keeps the write-ahead log small. It is on the same disk, and its recycled files would be space on a full disk. */
const smallLog = ['max_wal_size = 32MB', 'min_wal_size = 32MB', 'wal_recycle = off', 'autovacuum = off']
const [asked, engine, stride = '1', mount] = process.argv.slice(2)
const parts = { kills: tryKills, crashes: tryCrashes, disk: tryDisk }

const works = { export: exportMonth, detach: detachMonth, attach: attachMonth }
type Word = keyof typeof works

/** A filled store, of which every try gets a copy. */
type Master = {
  name: string
  filled: Filled
  /** Copies the store as it was before the month was detached, or with the month detached (`isAway`). */
  copy(isAway: boolean): Promise<Trial>
  /** The path of the month's file. */
  file: string
  /** The folder of the disk that is to be filled. */
  disk: string
  postgres: Postgres | undefined
}

if (asked === 'inside') await tryAll(engine as keyof typeof parts, 'sqlite')
else
  for (const part of asked ? [asked as keyof typeof parts] : (Object.keys(parts) as (keyof typeof parts)[]))
    for (const one of engine ? [engine] : ['sqlite', 'postgres']) await tryAll(part, one)

async function tryAll(part: keyof typeof parts, engine: string): Promise<void> {
  if (part === 'crashes' && engine === 'sqlite') return
  if (part === 'disk' && engine === 'sqlite' && mount === undefined) return onOwnDisk()
  if (part === 'disk' && engine === 'postgres' && process.getuid?.() !== 0)
    return console.log('LEFT OUT: only root can give PostgreSQL a disk of its own')
  const folder = mount ?? mkdtempSync(join(tmpdir(), 'triwire-archive-'))
  const postgres =
    engine === 'postgres' ? await startPostgres(part === 'disk' ? { diskMb, settings: smallLog } : {}) : undefined
  try {
    const master = postgres ? await prepareDatabase(postgres, folder) : await prepareFile(folder)
    await parts[part](master)
  } finally {
    postgres?.remove()
    if (mount === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs the script again in its own mount namespace, with a small disk. */
function onOwnDisk(): void {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-disk-'))
  const inside = `mount -t tmpfs -o size=64m none ${folder} && exec "$@"`
  const command = [process.execPath, import.meta.filename, 'inside', 'disk', stride, folder]
  const { status } = spawnSync('unshare', ['-rm', 'sh', '-c', inside, 'sh', ...command], { stdio: 'inherit' })
  rmSync(folder, { recursive: true })
  if (status !== 0) process.exitCode = 1
}

async function prepareFile(folder: string): Promise<Master> {
  const trial = await openFile(folder)
  const filled = await fill(trial, size)
  await trial.bytes()
  await trial.close()
  const file = join(folder, 'month.archive')
  const kept = join(folder, 'kept')
  copyFileSync(trial.place, kept)
  await work('detach', trial.place, file)
  await (await reopen(trial.place)).bytes()
  const [away, keptFile] = [join(folder, 'away'), join(folder, 'kept.archive')]
  copyFileSync(trial.place, away)
  copyFileSync(file, keptFile)
  let count = 0
  return {
    ...{ name: 'SQLite', filled, file, disk: folder, postgres: undefined },
    copy: async (isAway) => {
      for (const name of readdirSync(folder)) if (name.startsWith('copy')) rmSync(join(folder, name))
      rmSync(file, { force: true })
      const place = join(folder, `copy${count++}.db`)
      copyFileSync(isAway ? away : kept, place)
      if (isAway) copyFileSync(keptFile, file)
      return reopen(place)
    },
  }
}

async function prepareDatabase(postgres: Postgres, folder: string): Promise<Master> {
  const trial = await openUrl(postgres, 'kept')
  const filled = await fill(trial, size)
  await trial.close()
  const urlOf = (name: string) => postgres.url.replace(/postgres$/, name)
  const copyOf = (from: string, to: string) => {
    postgres.run(postgres.copying(from, to))
    postgres.run(`ALTER DATABASE ${to} SET search_path = turned, pg_catalog`)
    return urlOf(to)
  }
  const file = join(folder, 'month.archive')
  const keptFile = join(folder, 'kept.archive')
  await work('detach', copyOf('kept', 'away'), file)
  copyFileSync(file, keptFile)
  let count = 0
  return {
    ...{ name: 'PostgreSQL', filled, file, disk: join(postgres.folder, 'data'), postgres },
    copy: async (isAway) => {
      postgres.run(`DROP DATABASE IF EXISTS copy${count} WITH (FORCE)`)
      rmSync(file, { force: true })
      if (isAway) copyFileSync(keptFile, file)
      return reopen(copyOf(isAway ? 'away' : 'kept', `copy${++count}`))
    },
  }
}

/** Runs a command for the month in this process. */
async function work(word: Word, place: string, file: string): Promise<void> {
  const store = await openArchiveStore(readStorePlace(place, '.'))
  try {
    await works[word](store, { month, file, act: { actor: 'cli:trial@here' }, priceNanos, readList: readKeptList })
  } finally {
    await store.close()
  }
}

/** Checks after each fault that the store is right and knows the month, and that the command then works. */
async function judge(trial: Trial, word: Word, { filled: { first, head, owners }, file }: Master): Promise<void> {
  await verify(trial, head)
  const postings = await trial.post(first.slice(-3))
  if (postings.some((one) => one !== 'exists')) throw new Error(`a debit of the month was ${postings}`)
  const credit = await trial.books.credit(owners[0]!, 5n, `january ${owners[0]}`)
  if (credit !== 'exists') throw new Error(`a credit of the month was ${credit}`)
  await work(word, trial.place, file)
  await verify(trial, head)
}

async function tryKills(master: Master): Promise<void> {
  for (const word of ['detach', 'attach'] as const)
    for (const moment of ['before', 'after']) {
      let kills = 0
      for (let at = 0; ; at += Number(stride)) {
        const trial = await master.copy(word === 'attach')
        const code = await dying(word, trial.place, master.file, at, moment)
        if (code === 0) {
          await trial.close()
          break
        }
        if (code !== 'SIGKILL') throw new Error(`${word}, statement ${at}: ended by itself with ${code}`)
        await told(`${word}, killed ${moment} statement ${at}`, () => judge(trial, word, master))
        await trial.close()
        kills++
      }
      console.log(`ok   ${master.name}, ${word}: ${kills} kills, right ${moment} a statement`)
    }
}

function dying(word: Word, place: string, file: string, at: number, moment: string): Promise<number | string | null> {
  const program = join(import.meta.dirname, 'archive/dying.ts')
  const child = spawn(process.execPath, [program, word, place, file, `${at}`, moment], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return new Promise((done) => child.once('exit', (code, signal) => done(signal ?? code)))
}

async function tryCrashes(master: Master): Promise<void> {
  const query = pg.Client.prototype.query as (...values: unknown[]) => unknown
  for (const word of ['detach', 'attach'] as const) {
    let crashes = 0
    for (let at = 0, isCrashed = true; isCrashed; at += Number(stride)) {
      const trial = await master.copy(word === 'attach')
      const store = await openArchiveStore(readStorePlace(trial.place, '.'))
      let left = at
      isCrashed = false
      pg.Client.prototype.query = function (this: unknown, ...values: unknown[]) {
        const result = query.apply(this, values)
        if (left-- === 0) {
          isCrashed = true
          master.postgres!.stop('immediate')
          master.postgres!.start()
        }
        return result
      } as typeof pg.Client.prototype.query
      const wishes = { ...{ month, file: master.file, act: { actor: 'cli:trial@here' } }, priceNanos }
      const outcome = await works[word](store, { ...wishes, readList: readKeptList }).then(
        () => 'worked',
        (error: Error) => error.message,
      )
      pg.Client.prototype.query = query as typeof pg.Client.prototype.query
      await store.close().catch(() => {})
      if (isCrashed) {
        await told(`${word}, crash at statement ${at} (${outcome})`, () => judge(trial, word, master))
        crashes++
      }
      await trial.close().catch(() => {})
    }
    console.log(`ok   ${master.name}, ${word}: ${crashes} crashes of the server, one at each statement`)
  }
}

async function tryDisk(master: Master): Promise<void> {
  for (const word of ['export', 'detach', 'attach'] as const) {
    const failures: Record<string, number> = {}
    for (let space = 0; ; space += space < 262_144 ? 16_384 : space < 2 ** 21 ? 131_072 : 2 ** 20) {
      const trial = await master.copy(word === 'attach')
      const fillerPath = join(master.disk, 'filler')
      takeAllBut(space, fillerPath)
      const { code, text } = await told(`${word} on ${space} bytes`, () => command(trial, word, master.file))
      const parts = readdirSync(join(master.file, '..')).filter((name) => name.endsWith('.part'))
      rmSync(fillerPath)
      if (parts.length > 0) throw new Error(`${word} on ${space} bytes left ${parts}`)
      if (word === 'export' && code !== 0 && existsSync(master.file))
        throw new Error(`${word} on ${space} bytes left a file`)
      if (master.postgres) await restart(master.postgres)
      const again = master.postgres ? await reopen(trial.place) : trial
      await told(`${word} on ${space} bytes: ${text}`, () => judge(again, word, master))
      if (again !== trial) await again.close()
      await trial.close().catch(() => {})
      if (code === 0) {
        console.log(`ok   ${master.name}, ${word} works with ${space >> 10} KB; before that:`)
        for (const [message, count] of Object.entries(failures)) console.log(`       ${count} × ${message}`)
        break
      }
      const message = text.trim().replace(/ +/g, ' ').replaceAll(trial.place, 'STORE').replaceAll(master.file, 'FILE')
      failures[message] = (failures[message] ?? 0) + 1
    }
  }
}

/** Starts PostgreSQL again if it has ended, which it does if it cannot write its log. */
async function restart(postgres: Postgres): Promise<void> {
  try {
    postgres.run('SELECT 1')
  } catch {
    try {
      postgres.stop('immediate')
    } catch {
      // The server has ended.
    }
    postgres.start()
  }
}

/** Fills a disk until only `space` bytes are free. @param path the file that fills it */
function takeAllBut(space: number, path: string): void {
  const { bavail, bsize } = statfsSync(join(path, '..'))
  const file = openSync(path, 'w')
  const piece = Buffer.alloc(1 << 20)
  try {
    for (let left = Math.max(0, bavail * bsize - space); left > 0; )
      left -= writeSync(file, piece, 0, Math.min(left, piece.length))
  } finally {
    closeSync(file)
  }
}

async function command(trial: Trial, word: Word, file: string): Promise<{ code: number; text: string }> {
  const child = start(trial, ['ledger', 'archive', word, month, '--file', file], ['ignore', 'ignore', 'pipe'])
  const [text, code] = await Promise.all([
    Array.fromAsync(child.stderr!),
    new Promise<number>((done) => child.once('exit', (code) => done(code ?? -1))),
  ])
  return { code, text: text.join('') }
}

/** Adds the name of the try to an error. */
async function told<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error })
  }
}
