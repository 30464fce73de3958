import { BookError } from '../accounts/book-error.ts'
import { keysNamedMax } from '../accounts/book-rows.ts'
import type { Books } from '../accounts/books.ts'
import type { Calendar } from '../accounts/calendar.ts'
import type { EntryFilter } from '../accounts/entries.ts'
import { nameOfKey, withoutKeys } from '../accounts/keys.ts'
import { isFolding } from '../accounts/usage/question.ts'
import { sentenceOf } from './book-words.ts'
import { type DayOrTime, momentOf } from './fields.ts'
import type { Context } from './operation.ts'
import { wrongField } from './problem.ts'

type FilterInput = {
  account?: string | undefined
  key?: string | undefined
  model?: string | undefined
  from?: DayOrTime | undefined
  to?: DayOrTime | undefined
}

/**
 * Converts a query to a filter of entries. Days are those of the reporting zone (ruling X12).
 * @throws ProblemError with the name of a field that matches nothing, and with the cure
 */
export async function readFilter(
  { books, calendar }: Pick<Context, 'books' | 'calendar'>,
  { account, key, model, ...times }: FilterInput,
): Promise<EntryFilter> {
  const { sinceMs, untilMs } = readSpan(calendar, times)
  const accountId = account === undefined ? undefined : await findAccountId(books, account)
  const keyIds = key === undefined ? undefined : await findKeyIds(books, key, accountId)
  if (model !== undefined) await refuseUnknownModel(books, model)
  return { accountId, keyIds, model, sinceMs, untilMs }
}

/** Checks that a span ends after it begins. @throws ProblemError */
export function refuseBackwards(fromMs: number, toMs: number): void {
  if (fromMs >= toMs) throw wrongField('from', '`from` is not before `to`: name an earlier time, or a later one')
}

/** Reads a span of time. @throws ProblemError if it is invalid */
export function readSpan(
  calendar: Calendar,
  { from, to }: Pick<FilterInput, 'from' | 'to'>,
): { sinceMs: number | undefined; untilMs: number | undefined } {
  const sinceMs = from && momentOf(from, calendar)
  const untilMs = to && momentOf(to, calendar)
  if (sinceMs !== undefined && untilMs !== undefined) refuseBackwards(sinceMs, untilMs)
  return { sinceMs, untilMs }
}

/** Finds the id of an account. @throws ProblemError if there is no such account */
export async function findAccountId(books: Books, account: string): Promise<string> {
  try {
    return (await books.findAccount(account)).id
  } catch (error) {
    if (!(error instanceof BookError)) throw error
    throw wrongField('account', `There is no account "${withoutKeys(account)}": see triwire account list`, error)
  }
}

/** Finds the id of a person. @throws ProblemError if no person has this name or id, or if several have it */
export async function findPersonId(books: Books, person: string): Promise<string> {
  try {
    return (await books.findPerson(person)).id
  } catch (error) {
    if (!(error instanceof BookError)) throw error
    throw wrongField('person', sentenceOf(error), error)
  }
}

/** Finds keys by an id, first characters or label. A label can match several keys, such as a key and its successors. */
async function findKeyIds(books: Books, key: string, accountId: string | undefined): Promise<string[]> {
  const shown = withoutKeys(key)
  const found = await books.findKeys(nameOfKey(key), accountId)
  const whose = accountId === undefined ? '' : ' of that account'
  if (!found.length) throw wrongField('key', `There is no key "${shown}"${whose}: see triwire key list`)
  if (new Set(found.map((one) => one.accountId)).size > 1)
    throw wrongField('key', `Several accounts have a key "${shown}": name one of them with \`account\``)
  if (found.length > keysNamedMax)
    throw wrongField('key', `More than ${keysNamedMax} keys are called "${shown}": name one by its id`)
  return found.map(({ id }) => id)
}

async function refuseUnknownModel(books: Books, model: string): Promise<void> {
  const models = await books.listModels()
  // The list of models is incomplete while much of the ledger is not folded (summed into rows for reports).
  if (models.includes(model) || isFolding(await books.readFolding())) return
  const those = models.length ? `it has ${models.join(', ')}` : 'it has no debits yet'
  throw wrongField('model', `The ledger has no entry of "${model}": ${those}`)
}
