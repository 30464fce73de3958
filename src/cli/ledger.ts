import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { type Head, parseHead } from '../accounts/chain.ts'
import type { Audited, EntryFilter, VerifyOptions } from '../accounts/entries.ts'
import { formatJsonLines } from '../operations/csv.ts'
import { eachLine, formatCsv } from '../operations/entry-lines.ts'
import { readFilter } from '../operations/filter.ts'
import { filterFields, filterFlags } from '../operations/ledger.ts'
import type { Context } from '../operations/operation.ts'
import { ProblemError } from '../operations/problem.ts'
import { readLogs } from './access-log.ts'
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
