import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { formatTime } from '../accounts/calendar.ts'
import { type Head, parseHead } from '../accounts/chain.ts'
import { type CorrectedEntry, correctTimes } from '../accounts/corrections.ts'
import type { Audited, EntryFilter, VerifyOptions } from '../accounts/entries.ts'
import { formatJsonLines } from '../operations/csv.ts'
import { eachLine, formatCsv } from '../operations/entry-lines.ts'
import { readInstant } from '../operations/fields.ts'
import { readFilter } from '../operations/filter.ts'
import { filterFields, filterFlags } from '../operations/ledger.ts'
import type { Context } from '../operations/operation.ts'
import { ProblemError } from '../operations/problem.ts'
import { readLogs } from './access-log.ts'
import { confirm } from './confirm.ts'
import { addOptions, inWords, typedOptions } from './operations.ts'
import { clearProgress, note, print, printPieces, showProgress } from './print.ts'
import { type GlobalOptions, withStore } from './store.ts'

/**
 * Adds the commands beside those of the table of operations. `verify` reads log files and computes for minutes. `export` prints
 * the whole ledger as one stream.
 */
export function addLedgerCommands(program: Command): void {
  const ledger = program.commands.find((command) => command.name() === 'ledger')!
  ledger
    .command('verify')
    .description('do every sum and digest again; fails on any finding, else prints a head to keep elsewhere')
    .option('--log <file...>', 'access log as JSON lines, as old as the ledger, to compare with it')
    .option('--against <head>', 'what an earlier verify printed: all that it covered must still be there', readHead)
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
    .description('let entries that a wrong clock dated ahead count at their right times')
    .requiredOption(
      '--effective <time>',
      'when the last entry with a wrong time was made, such as 2026-11-21T08:30:00Z',
      readTime,
    )
    .option('--dry-run', 'only list the entries, with the times at which they would count')
    .option('--yes', 'do not ask')
    .action(correct)
  const exporting = ledger.command('export').description('write entries, the oldest first')
  addOptions(exporting, filterFlags, filterFields)
  exporting
    .option('--csv', 'as comma-separated values; with --json instead one entry of JSON on each line')
    .action(({ csv }: { csv?: true }, command: Command) => {
      const { json } = command.optsWithGlobals<GlobalOptions>()
      if (json === csv) command.error('error: say how: with --csv, or with --json (one entry on each line)')
      return withStore(
        command,
        async (books, calendar) => {
          const entries = books.eachEntry(await filterOf({ books, calendar }, command))
          await printPieces(json ? formatJsonLines(eachLine(entries, true)) : formatCsv(entries, true))
        },
        { zoned: true },
      )
    })
  program.commands
    .find((command) => command.name() === 'audit')!
    .command('verify')
    .description(
      'do every digest of the audit trail again; fails on any finding, else prints its end to keep elsewhere',
    )
    .action(async (_options, command: Command) => {
      const { findings, head } = await withStore(command, (books) => books.verifyAudit())
      const end = head ?? 'none: nothing was changed yet'
      tellFindings(command, { findings, head }, `the audit trail is whole\nhead ${end}`)
    })
}

type CorrectOptions = { effective: number; dryRun?: true; yes?: true }

async function correct({ effective, dryRun, yes }: CorrectOptions, command: Command): Promise<void> {
  const found = await withStore(command, async (books) => ({
    entries: correctTimes(await books.listAhead(), await books.readNowMs(), effective),
  }))
  const { length } = found.entries
  if (dryRun) return tellCorrected(command, found.entries, 'no entry is ahead of the clock')
  // Without entries, only budgets that began ahead are counted anew.
  if (!yes && length > 0)
    await confirm(
      command,
      `Correct ${length} entries? This begins form 3 of the ledger: no older triwire can use the store from then on.`,
      ['The ledger was left as it was', 'see --dry-run, and run with --yes to correct it'],
    )
  const corrected = await withStore(command, (books) => books.correctAhead(effective), { zoned: true })
  tellCorrected(command, corrected, 'no entry is ahead of the clock')
}

function tellCorrected(command: Command, entries: readonly CorrectedEntry[], none: string): void {
  const rows = entries.map(({ accountId, accountName, seq, name, createdMs, postedMs, effectiveMs }) => ({
    ...{ account: accountId, account_name: accountName ?? null, seq, name },
    created: formatTime(createdMs)!,
    posted: formatTime(postedMs)!,
    effective: formatTime(effectiveMs)!,
  }))
  const line = ({ account, account_name, seq, name, posted, effective }: (typeof rows)[number]) =>
    `${account_name ?? account}, entry ${seq} (${name}): posted ${posted}, counts at ${effective}`
  print(command, rows, () => rows.map(line).join('\n') || none)
}

function readTime(text: string): number {
  try {
    return readInstant(text)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

/** Prints what a check has found, or the text for a check without findings. */
function tellFindings(command: Command, { findings, head }: Pick<Audited, 'findings' | 'head'>, right: string): void {
  const ok = findings.length === 0
  print(command, { ok, findings, head: head ?? null }, () => (ok ? right : findings.join('\n')))
  if (!ok) process.exitCode = 1
}

/** Runs the audit. A file that is too damaged to be opened is a finding too. */
async function auditStore(command: Command, options: VerifyOptions): Promise<Audited> {
  const { DamageError } = await import('../store/files/store-error.ts')
  try {
    return await withStore(command, (books) => books.audit({ ...options, progress: showProgress }))
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

/** @throws Error with the option that matches nothing, and its cure */
async function filterOf(context: Pick<Context, 'books' | 'calendar'>, command: Command): Promise<EntryFilter> {
  try {
    return await readFilter(context, z.object(filterFields).parse(typedOptions(command, filterFlags)))
  } catch (error) {
    throw error instanceof ProblemError ? inWords(error, filterFlags) : error
  }
}
