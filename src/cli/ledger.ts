import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Books } from '../accounts/books.ts'
import type { Calendar } from '../accounts/calendar.ts'
import { type Head, parseHead } from '../accounts/chain.ts'
import type { Audited, EntryFilter, ListedEntry, VerifyOptions } from '../accounts/entries.ts'
import { formatCsv, toLine } from '../operations/entry-lines.ts'
import { type FilterInput, readFilter } from '../operations/filter.ts'
import { filterFields, filterFlags } from '../operations/ledger.ts'
import { ProblemError } from '../operations/problem.ts'
import { readLogs } from './access-log.ts'
import { inWords } from './operations.ts'
import { note, print } from './print.ts'
import { clearProgress, showProgress } from './progress.ts'
import { type GlobalOptions, withStore } from './store.ts'

/**
 * Adds the ledger commands that are not in the table of operations. `verify` reads log files and computes for minutes.
 * `export` prints the whole ledger as one stream.
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
      const { findings, head, notes = [] } = await auditStore(command, { priceNanos, log: lines, against })
      for (const text of notes) note(command, text)
      const ok = !findings.length
      print(command, { ok, findings, head: head ?? null }, () =>
        ok ? `the ledger is right\nhead ${head}` : findings.join('\n'),
      )
      if (!ok) process.exitCode = 1
    })
  addFilters(ledger.command('export').description('write entries, the oldest first'))
    .option('--csv', 'as comma-separated values; with --json instead one entry of JSON on each line')
    .action((options: LedgerFilterOptions & { csv?: true }, command: Command) => {
      const { json } = command.optsWithGlobals<GlobalOptions>()
      if ((json === true) === (options.csv === true))
        command.error('error: say how: with --csv, or with --json (one entry on each line)')
      return withStore(
        command,
        async (books, calendar) => {
          const entries = books.eachEntry(await filterOf(books, calendar, options))
          await pipeline(Readable.from(json ? formatJsonLines(entries) : formatCsv(entries)), process.stdout, {
            end: false,
          })
        },
        { zoned: true },
      )
    })
}

async function* formatJsonLines(entries: AsyncIterable<ListedEntry>): AsyncGenerator<string> {
  for await (const entry of entries) yield `${JSON.stringify(toLine(entry))}\n`
}

/** Runs the audit. A file that is too damaged to be opened is a finding too. */
async function auditStore(command: Command, options: VerifyOptions): Promise<Audited> {
  const { DamageError } = await import('../store/files/cures.ts')
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

/** The typed options that select entries. */
type LedgerFilterOptions = Readonly<Record<string, unknown>>

const names = Object.keys(filterFields) as (keyof typeof filterFields)[]

/** Adds the filters of `ledger list` to another command. */
function addFilters(command: Command): Command {
  for (const name of names) {
    const option = new Option(filterFlags.options[name], filterFields[name].description)
    command.addOption(option.argParser((typed) => readValue(name, typed)))
  }
  return command
}

function readValue(name: keyof typeof filterFields, typed: string): unknown {
  const { reads } = filterFlags
  const result = filterFields[name].safeParse(typed)
  if (!result.success) throw new InvalidArgumentError(result.error.issues[0]!.message)
  return name === 'to' ? filterFields.to.parse(reads.to(typed)) : result.data
}

/** @throws Error with the option that matches nothing, and its cure */
async function filterOf(books: Books, calendar: Calendar, options: LedgerFilterOptions): Promise<EntryFilter> {
  const typed = names.map((name) => [name, options[new Option(filterFlags.options[name]).attributeName()]])
  try {
    return await readFilter({ books, calendar }, Object.fromEntries(typed) as FilterInput)
  } catch (error) {
    throw error instanceof ProblemError ? inWords(error, filterFlags) : error
  }
}
