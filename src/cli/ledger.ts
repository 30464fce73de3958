import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import type { Books } from '../accounts/books.ts'
import { formatTime } from '../accounts/calendar.ts'
import { type Head, parseHead } from '../accounts/chain.ts'
import { type CorrectedEntry, correctTimes, countOf, eachCorrected } from '../accounts/corrections.ts'
import type { Audited, EntryFilter, VerifyOptions } from '../accounts/entries.ts'
import { formatJsonLines } from '../operations/csv.ts'
import { eachLine, formatCsv } from '../operations/entry-lines.ts'
import { readInstant } from '../operations/fields.ts'
import { readFilter } from '../operations/filter.ts'
import { filterFields, filterFlags } from '../operations/ledger.ts'
import type { Context } from '../operations/operation.ts'
import { ProblemError } from '../operations/problem.ts'
import { readLogs } from './access-log.ts'
import { addArchiveCommands, verifyArchives } from './archive.ts'
import { confirm } from './confirm.ts'
import { addOptions, inWords, typedOptions } from './operations.ts'
import { clearProgress, isJson, note, print, printPieces, showProgress } from './print.ts'
import { type GlobalOptions, withStore } from './store.ts'

/**
 * Adds the commands of the ledger and the audit trail that the table of operations does not have. `verify` reads log
 * files and can take minutes. `export` prints the whole ledger as a stream.
 */
export function addLedgerCommands(program: Command): void {
  const ledger = program.commands.find((command) => command.name() === 'ledger')!
  ledger
    .command('verify')
    .description(
      'recompute every sum and digest of the ledger, and print a head (a digest to keep elsewhere); fails on any mismatch',
    )
    .option('--log <file...>', 'access logs as JSON lines, from the beginning of the ledger, to compare with it')
    .option(
      '--against <head>',
      'the head that an earlier verify printed: all entries that it covered must still exist unchanged',
      readHead,
    )
    .action(async ({ log, against }: { log?: string[]; against?: Head }, command: Command) => {
      const lines = log && (await readLogs(log))
      const { priceNanos } = await import('../catalog/model.ts')
      const { readKeptList } = await import('../config/list-text.ts')
      const options = { priceNanos, readList: readKeptList, log: lines, against }
      const { findings, head, notes = [] } = await auditStore(command, options)
      for (const text of notes) note(command, text)
      tellFindings(command, { findings, head }, `the ledger is right\nhead ${head}`)
    })
  ledger
    .command('correct')
    .description('correct the times of entries that a wrong clock dated in the future')
    .requiredOption(
      '--effective <time>',
      'the true time at which the last entry with a wrong time was made, such as 2026-11-21T08:30:00Z',
      readTime,
    )
    .option('--dry-run', 'only list the entries, with their corrected times')
    .option('--yes', 'do not ask first')
    .action(correct)
  addArchiveCommands(ledger)
  const exporting = ledger.command('export').description('write entries, the oldest first')
  addOptions(exporting, filterFlags, filterFields)
  exporting
    .option('--csv', 'print comma-separated values; use --json instead for one entry of JSON on each line')
    .action(({ csv }: { csv?: true }, command: Command) => {
      const { json } = command.optsWithGlobals<GlobalOptions>()
      if (json === csv) command.error('error: say how: with --csv, or with --json (one entry on each line)')
      return withStore(command, async (books, calendar) => {
        const entries = books.eachEntry(await filterOf({ books, calendar }, command))
        await printPieces(json ? formatJsonLines(eachLine(entries, true)) : formatCsv(entries, true))
      })
    })
  program.commands
    .find((command) => command.name() === 'audit')!
    .command('verify')
    .description(
      'recompute every digest of the audit trail, and print a head (a digest to keep elsewhere); fails on any mismatch',
    )
    .action(async (_options, command: Command) => {
      const { findings, head } = await withStore(command, (books) => books.verifyAudit())
      const end = head ?? 'none: nothing was changed yet'
      tellFindings(command, { findings, head }, `the audit trail is whole\nhead ${end}`)
    })
}

type CorrectOptions = { effective: number; dryRun?: true; yes?: true }

async function correct({ effective, dryRun, yes }: CorrectOptions, command: Command): Promise<void> {
  const count = await withStore(command, async (books) => {
    const correction = correctTimes(await books.listAhead(), await books.readNowMs(), effective)
    if (dryRun) await printPieces(formatCorrected(command, eachCorrected(books, correction)))
    return countOf(correction)
  })
  if (dryRun) return
  // Without entries to correct, only budgets that began at a wrong time are counted again. This needs no confirmation.
  if (!yes && count > 0)
    await confirm(
      command,
      `Correct ${count} entries? This begins form 3 of the ledger: no older triwire can use the store from then on.`,
      ['The ledger was left as it was', 'see --dry-run, and run with --yes to correct it'],
    )
  const work = async (books: Books) => {
    const correction = await books.correctAhead(effective)
    await printPieces(formatCorrected(command, eachCorrected(books, correction)))
  }
  await withStore(command, work, { isLong: true })
}

/** Formats entries as a JSON list or as lines, one by one, because there may be too many for the memory. */
async function* formatCorrected(command: Command, entries: AsyncIterable<CorrectedEntry>): AsyncIterable<string> {
  const asJson = isJson(command)
  let count = 0
  for await (const { accountId, accountName, seq, name, createdMs, postedMs, effectiveMs } of entries) {
    const [posted, effective] = [formatTime(postedMs)!, formatTime(effectiveMs)!]
    const row = { account: accountId, account_name: accountName ?? null, seq, name, created: formatTime(createdMs)! }
    if (asJson) yield `${count === 0 ? '[' : ','}${JSON.stringify({ ...row, posted, effective })}`
    else yield `${accountName ?? accountId}, entry ${seq} (${name}): posted ${posted}, counts at ${effective}\n`
    count++
  }
  if (asJson) yield count === 0 ? '[]\n' : ']\n'
  else if (count === 0) yield 'no entry is ahead of the clock\n'
}

function readTime(text: string): number {
  try {
    return readInstant(text)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

/** Prints the findings of a check, or else the text `right`. With findings the exit code is 1. */
function tellFindings(command: Command, { findings, head }: Pick<Audited, 'findings' | 'head'>, right: string): void {
  const ok = findings.length === 0
  print(command, { ok, findings, head: head ?? null }, () => (ok ? right : findings.join('\n')))
  if (!ok) process.exitCode = 1
}

/** Runs the audit. If the store is too damaged to open, that is a finding and not an error. */
async function auditStore(command: Command, options: VerifyOptions): Promise<Audited> {
  const { DamageError } = await import('../store/files/store-error.ts')
  try {
    return await withStore(command, async (books) => {
      const audited = await books.audit({ ...options, progress: showProgress })
      return verifyArchives(await books.listArchives(), audited)
    })
  } catch (error) {
    if (error instanceof DamageError) return { findings: [error.message], head: undefined }
    throw error
  } finally {
    clearProgress()
  }
}

function readHead(text: string): Head {
  try {
    return parseHead(text)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

/** Reads the filter of entries from the options. @throws Error if the value of an option matches nothing */
async function filterOf(context: Pick<Context, 'books' | 'calendar'>, command: Command): Promise<EntryFilter> {
  try {
    return await readFilter(context, z.object(filterFields).parse(typedOptions(command, filterFlags)))
  } catch (error) {
    throw error instanceof ProblemError ? inWords(error, filterFlags) : error
  }
}
