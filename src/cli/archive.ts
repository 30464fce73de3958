import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { type Archive, isAway } from '../accounts/archive.ts'
import type { Audited } from '../accounts/entries.ts'
import type { ArchiveReport, ArchiveWishes } from '../store/archive/archive.ts'
import type { ArchiveStore } from '../store/archive/end.ts'
import { clearProgress, formatRows, print, showProgress } from './print.ts'
import { cliActor, explainBookError, findStore, withStore } from './store.ts'

type ArchiveWork = (store: ArchiveStore, wishes: ArchiveWishes) => Promise<ArchiveReport>

/**
 * The commands that work on one month. `said` is printed after the file's name when the command has succeeded. `old` is
 * printed after the month if an earlier command had done the work.
 */
const works = {
  export: {
    text: 'write the entries of a closed month to a file and verify the file; the store does not change',
    load: async (): Promise<ArchiveWork> => (await import('../store/archive/archive.ts')).exportMonth,
    said: 'is whole: every digest, balance and amount follows',
    old: undefined,
  },
  detach: {
    text: 'move the entries of the oldest closed month into a file; the store keeps one row for each account, and an index',
    load: async (): Promise<ArchiveWork> => (await import('../store/archive/archive.ts')).detachMonth,
    said: 'has the entries now: keep it as long as the ledger, and copies of it',
    old: 'was detached before, so its file was not read: triwire ledger archive export verifies the file',
  },
  attach: {
    text: 'bring the entries of a detached month back into the store, unchanged',
    load: async (): Promise<ArchiveWork> => (await import('../store/archive/archive.ts')).attachMonth,
    said: 'was read: its entries are in the store again',
    old: 'was attached before: its entries are in the store',
  },
} as const

type WorkOptions = { file?: string; dryRun?: true }

/** Adds `ledger archive`, which moves closed months out of the store into files and back (src/store/archive). */
export function addArchiveCommands(ledger: Command): void {
  const archive = ledger.command('archive').description('move the entries of closed months into files, and back')
  for (const [name, work] of Object.entries(works)) {
    const command = archive
      .command(name)
      .description(work.text)
      .argument('<month>', 'a month of the reporting zone, such as 2026-01', readMonth)
      .option('--file <path>', 'the file for the month (default: a file beside the store or in the current folder)')
    if (name !== 'attach') command.option('--dry-run', 'only report what would be done')
    command.action((month: string, options: WorkOptions, command: Command) => act(command, month, options, work))
  }
  archive
    .command('list')
    .description('list the detached months, with their files')
    .action(async (_options, command: Command) => {
      const rows = (await withStore(command, (books) => books.listArchives())).map(rowOf)
      print(command, rows, () =>
        rows.length === 0
          ? 'no month was detached'
          : formatRows(['month', 'state', 'accounts', 'entries', 'file'], rows),
      )
    })
}

function readMonth(text: string): string {
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) return text
  throw new InvalidArgumentError('Write it like 2026-01.')
}

function rowOf({ month, state, accounts, entries, file, fileDigest }: Archive) {
  return { month, state, accounts, entries, file, sha256: fileDigest }
}

async function act(
  command: Command,
  month: string,
  { file, dryRun }: WorkOptions,
  { load, said, old }: (typeof works)[keyof typeof works],
): Promise<void> {
  const { openArchiveStore } = await import('../store/archive/open-end.ts')
  const { planMonth } = await import('../store/archive/archive.ts')
  const { priceNanos } = await import('../catalog/model.ts')
  const { readKeptList } = await import('../config/list-text.ts')
  const store = await openArchiveStore(await findStore(command.optsWithGlobals()))
  const wishes = {
    ...{ month, file: file && resolve(file), act: { actor: cliActor() } },
    ...{ priceNanos, readList: readKeptList, progress: showProgress },
  }
  try {
    const work = dryRun ? () => planMonth(store, wishes, load === works.detach.load) : await load()
    const report = await work(store, wishes)
    clearProgress()
    const { accounts, entries, digest = null, isOld } = report
    const data = { month, state: report.state, accounts, entries, file: report.file, sha256: digest }
    print(command, data, () => {
      const counts = `${month}: ${entries} entries of ${accounts} accounts`
      if (dryRun) return `${counts}, ${report.state}; the file: ${report.file}`
      return `${counts}\n${isOld ? `${month} ${old}` : `${report.file} ${said}`}\nSHA-256 ${digest}`
    })
  } catch (error) {
    throw explainBookError(error)
  } finally {
    clearProgress()
    await store.close()
  }
}

/** Compares archive files with their recorded digests, and adds findings to an audit. A missing file is only a note. */
export async function verifyArchives(archives: readonly Archive[], audited: Audited): Promise<Audited> {
  const { digestFile } = await import('../store/archive/file.ts')
  const findings = [...audited.findings]
  const notes = [...(audited.notes ?? [])]
  for (const archive of archives.filter(({ state }) => state !== 'sealing')) {
    const { month, file, fileDigest } = archive
    showProgress(`verifying: the archive of ${month}`)
    const digest = await digestFile(file).catch((error: Error) => error.message)
    if (digest === undefined) {
      if (isAway(archive))
        notes.push(`${month} is away, and its file ${file} is not on this machine: it was not compared`)
    } else if (digest !== fileDigest)
      findings.push(`archive of ${month}: ${file} is not as it was sealed: restore it from a copy`)
  }
  return { ...audited, findings, head: findings.length > 0 ? undefined : audited.head, notes }
}
