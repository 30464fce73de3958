import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { formatCredits } from '../accounts/credit.ts'
import type { StorePlace } from '../config/config.ts'
import type { CopyReport } from '../store/copy/copy.ts'
import type { GlobalOptions } from './options.ts'
import { clearProgress, formatTable, formatTime, note, print, showProgress } from './print.ts'
import { findStore } from './store.ts'

/** Adds `store copy`, which moves a store between a file and a database. Servers pause only for a restart. */
export function addStoreCommands(program: Command): void {
  const store = program.command('store').description('the store of accounts and ledger: move it')
  store
    .command('copy')
    .description(
      'move a store: copy it while servers use it, wait for the servers to stop, and prove that both stores are equal',
    )
    .requiredOption('--to <place>', 'the new place: a SQLite file, or postgres://user@host/database')
    .action(async ({ to }: { to: string }, command: Command) => {
      const { readStorePlace, storeMistake } = await import('../config/store-place.ts')
      const mistake = storeMistake(to)
      if (mistake) command.error(`error: --to ${mistake}`)
      const from = await findStore(command.optsWithGlobals())
      const target = readStorePlace(to, process.cwd())
      const report = await copy(from, target, command)
      const sealKey = findSealKey(from, target, command.optsWithGlobals<GlobalOptions>())
      const next = await sayNext(from, target, sealKey)
      print(command, toData(from, target, report, next), () => describe(from, target, report, next))
    })
}

async function copy(from: StorePlace, to: StorePlace, command: Command): Promise<CopyReport> {
  const { copyStore, refuseMovedElsewhere } = await import('../store/copy/copy.ts')
  const { openSource, openTarget } = await import('../store/copy/open-end.ts')
  const { StoreError } = await import('../store/files/store-error.ts')
  if (from.shown === to.shown) throw new StoreError(`${from.shown} is the store itself: name another place with --to`)
  const source = await openSource(from)
  try {
    await refuseMovedElsewhere(source, to.shown)
    const target = await openTarget(to)
    try {
      return await copyStore(source, target, {
        progress: showProgress,
        note(text) {
          clearProgress()
          note(command, text)
        },
        pause: (ms) => sleep(ms),
        clockMs: () => performance.now(),
      })
    } finally {
      clearProgress()
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** Finds the key that opens data sealed before the move (ruling T7). @returns a text that says where the key is */
async function findSealKey(from: StorePlace, to: StorePlace, { config }: GlobalOptions): Promise<string> {
  const { glanceAtConfig } = await import('../config/load.ts')
  const store = from.engine === 'sqlite' ? from.path : from.url.reveal()
  try {
    if (glanceAtConfig({ ...(config && { config }), store }).sealKey)
      return 'the seal_key of your configuration, as it is'
  } catch {
    // This command does not report mistakes in the configuration.
  }
  if (from.engine === 'postgres') return 'the seal_key that its servers had'
  const { realPath } = await import('../store/files/place.ts')
  const sealOf = (path: string) => [`${realPath(path)}.seal`, `${path}.seal`].find((seal) => existsSync(seal))
  const path = sealOf(from.path)
  const there = to.engine === 'sqlite' ? sealOf(to.path) : undefined
  if (path === undefined && there !== undefined) return `no seal_key: it takes the one in ${there}, from before`
  return path === undefined
    ? 'any seal_key, such as `openssl rand -base64 32` makes: there was none'
    : `what is in ${path} as seal_key (TRIWIRE_SEAL_KEY="$(cat '${path}')")`
}

async function sayNext(from: StorePlace, to: StorePlace, sealKey: Promise<string>): Promise<string[]> {
  const { realPath } = await import('../store/files/place.ts')
  const steps = [
    to.engine === 'postgres'
      ? `start each server with store: ${to.shown} and its password, a state_dir of its own, and ${await sealKey}`
      : `start the server with store: ${realPath(to.path)}, and ${await sealKey}`,
  ]
  const spool =
    'where a *.spool is left in or below the state_dir of a server that was, the ledger has not got what is in it'
  if (from.engine === 'postgres')
    steps.push(
      to.engine === 'sqlite'
        ? `${spool}: make it a part of ${realPath(to.path)}.spool before the server starts`
        : `${spool}: start a server with that folder`,
    )
  steps.push(`${from.shown} refuses servers and changes from now on; keep it until you are sure`)
  return steps
}

function toData(from: StorePlace, to: StorePlace, report: CopyReport, next: readonly string[]) {
  const { sums } = report
  return {
    from: from.shown,
    to: to.shown,
    equal: true,
    copied: report.copied,
    entries: sums.entries,
    credits: sums.credits,
    debits: sums.debits,
    credited: formatCredits(sums.creditedNanos),
    debited: formatCredits(sums.debitedNanos),
    digest: sums.digest,
    accounts: report.accounts,
    balances: formatCredits(report.balancesNanos),
    keys: report.keys,
    prices: report.prices,
    head: formatTime(report.headMs),
    pause_ms: report.pauseMs,
    next,
  }
}

function describe(from: StorePlace, to: StorePlace, report: CopyReport, next: readonly string[]): string {
  const { from: _, to: __, equal: ___, next: ____, ...facts } = toData(from, to, report, next)
  const rows = Object.entries(facts)
    .filter(([name]) => name !== 'pause_ms' && name !== 'copied')
    .map(([name, value]) => [name, `${value}`])
  return [
    `${from.shown} and ${to.shown} are equal: every entry, balance, key and price was read from both and compared`,
    '',
    formatTable(['of both', ''], rows),
    '',
    `${report.copied} entries were copied now; the pause took ${(report.pauseMs / 1000).toFixed(1)} s`,
    ...next.map((step) => `next: ${step}`),
  ].join('\n')
}
