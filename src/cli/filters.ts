import { type Command, InvalidArgumentError } from 'commander'
import type { Books } from '../accounts/books.ts'
import type { EntryFilter } from '../accounts/entries.ts'
import { nameOfKey, withoutKeys } from '../accounts/keys.ts'
import { explainBookError } from './book-errors.ts'

/** What is typed to say which entries are meant. */
export type FilterOptions = {
  account?: string
  key?: string
  model?: string
  since?: number
  until?: number
}

const dayMs = 86_400_000

export function addFilters(command: Command): Command {
  return command
    .option('--account <account>', 'only of this one, by name or id')
    .option('--key <key>', 'only with this one, by id, first characters or label')
    .option('--model <model>', 'only of this one, by its id in the catalog')
    .option(
      '--since <time>',
      'posted then or later: a day in UTC such as 2026-11-21, or 2026-11-21T08:30:00Z',
      readSince,
    )
    .option('--until <time>', 'posted before then, or on that day', readUntil)
}

/** @throws Error with the option that names nothing, and its cure. */
export async function readFilter(books: Books, options: FilterOptions): Promise<EntryFilter> {
  const { account, key, model, since: sinceMs, until: untilMs } = options
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs >= untilMs)
    throw new Error('--since is not before --until: name an earlier time, or a later one')
  const accountId = account === undefined ? undefined : await findAccountId(books, account)
  const keyIds = key === undefined ? undefined : await findKeyIds(books, key, accountId)
  if (model !== undefined) await refuseUnknownModel(books, model)
  return { accountId, keyIds, model, sinceMs, untilMs }
}

async function findAccountId(books: Books, account: string): Promise<string> {
  try {
    return (await books.findAccount(account)).id
  } catch (error) {
    throw new Error(`--account: ${(explainBookError(error) as Error).message}`, { cause: error })
  }
}

/** A label is of all keys that have it, which a rotated one and its successors do; of two accounts it means neither. */
async function findKeyIds(books: Books, key: string, accountId: string | undefined): Promise<string[]> {
  const shown = withoutKeys(key)
  const found = (await books.findKeys(nameOfKey(key))).filter(
    (one) => accountId === undefined || one.accountId === accountId,
  )
  const whose = accountId === undefined ? '' : ' of that account'
  if (!found.length) throw new Error(`--key: There is no key "${shown}"${whose}: see triwire key list`)
  if (new Set(found.map((one) => one.accountId)).size > 1)
    throw new Error(`--key: Several accounts have a key "${shown}": name one of them with --account`)
  return found.map(({ id }) => id)
}

async function refuseUnknownModel(books: Books, model: string): Promise<void> {
  const models = await books.listModels()
  if (models.includes(model)) return
  const those = models.length ? `it has ${models.join(', ')}` : 'it has no debits yet'
  throw new Error(`--model: The ledger has no entry of "${model}": ${those}`)
}

/** @returns Unix milliseconds from which on entries count. */
function readSince(text: string): number {
  return readDay(text) ?? readInstant(text)
}

/** @returns Unix milliseconds from which on entries no longer count: a day is a whole one. */
function readUntil(text: string): number {
  const startMs = readDay(text)
  return startMs === undefined ? readInstant(text) : startMs + dayMs
}

function readDay(text: string): number | undefined {
  return /^\d{4}-\d\d-\d\d$/.test(text) ? readDate(`${text}T00:00:00.000Z`) : undefined
}

/** RFC 3339. */
function readInstant(text: string): number {
  const [, date, time, fraction = '', sign, hours, minutes] =
    /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/.exec(text) ?? []
  if (date === undefined)
    throw new InvalidArgumentError('Write a day like 2026-11-21 or a time like 2026-11-21T08:30:00Z.')
  const offsetMs = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000 * (sign === '-' ? -1 : 1)
  // What stands behind the milliseconds makes a time later than them.
  const ms = Math.ceil(Number(`0${fraction}`) * 1_000)
  return readDate(`${date}T${time}.000Z`) + ms - offsetMs
}

/** A day or an hour that does not exist would become another one. */
function readDate(iso: string): number {
  const ms = Date.parse(iso)
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== iso)
    throw new InvalidArgumentError('There is no such day or time.')
  return ms
}
