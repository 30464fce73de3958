import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Books } from '../accounts/books.ts'
import type { Calendar } from '../accounts/calendar.ts'
import type { EntryFilter } from '../accounts/entries.ts'
import { type FilterInput, readFilter } from '../operations/filter.ts'
import { filterFields, filterFlags } from '../operations/ledger.ts'
import { ProblemError } from '../operations/problem.ts'
import { inWords } from './operations.ts'

/** What is typed to say which entries are meant. */
export type FilterOptions = Readonly<Record<string, unknown>>

const names = Object.keys(filterFields) as (keyof typeof filterFields)[]

/** As `ledger list` has them, for what else reads the ledger. */
export function addFilters(command: Command): Command {
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

/** @throws Error with the option that names nothing, and its cure. */
export async function filterOf(books: Books, calendar: Calendar, options: FilterOptions): Promise<EntryFilter> {
  const typed = names.map((name) => [name, options[new Option(filterFlags.options[name]).attributeName()]])
  try {
    return await readFilter({ books, calendar }, Object.fromEntries(typed) as FilterInput)
  } catch (error) {
    throw error instanceof ProblemError ? inWords(error, filterFlags) : error
  }
}
