import { createHash, hash } from 'node:crypto'
import { datedMax } from './clock.ts'

/*
 * The hash chain of the ledger (ruling C15). Each entry carries a digest of its fields and of the previous digest in
 * the same account. To change an entry, a forger must recompute all later entries of its account. A head covers the
 * last digests of all accounts and is kept outside the store, so even that forgery is found.
 *
 * The digest is the same on every store. Its input is text, so that SQL can make it too. The input is a row of fields,
 * each as
 *
 *     field(x) = octet_length(x) || ':' || x      null is '-'
 *
 * Integers are written in decimal. Each field begins with its length, so no field can run into the next.
 */

/*
 * Later forms of the digest add columns. Digests of older forms stay valid. Form 2 is form 1 plus `calls` (ruling C11);
 * only entries with calls have it. Form 3 is form 1 plus `calls` and all columns of `detailKinds`. Only entries that
 * use one of those columns have form 3.
 */

/**
 * Columns that only entries of form 3 use, with the kinds of their values. An unused column is null (docs/ledger.md).
 */
export const detailKinds = {
  list: 'text',
  band: 'text',
  tier: 'text',
  geo: 'text',
  person: 'text',
  labels: 'text',
  cost_version: 'text',
  cost: 'integer',
  cost_reported: 'text',
  alias: 'text',
  fell_back_from: 'text',
  fell_back_cause: 'text',
  moved: 'text',
  effective: 'integer',
} as const

export type DetailColumn = keyof typeof detailKinds

/** The columns of `detailKinds`, in the order in which a digest of form 3 contains their values. */
export const detailColumns = Object.keys(detailKinds) as DetailColumn[]

/**
 * All columns of an entry except its id and digest, with the kinds of their values. A digest covers them in this order.
 */
export const entryKinds = {
  account_id: 'text',
  seq: 'integer',
  kind: 'text',
  amount: 'integer',
  balance_after: 'integer',
  reference: 'text',
  request_id: 'text',
  key_id: 'text',
  client_wire: 'text',
  model: 'text',
  model_wire: 'text',
  upstream: 'text',
  upstream_account: 'text',
  input_tokens: 'integer',
  cache_read_tokens: 'integer',
  cache_write_tokens: 'integer',
  cache_write_1h_tokens: 'integer',
  output_tokens: 'integer',
  reasoning_tokens: 'integer',
  priced_calls: 'integer',
  usage_source: 'text',
  price_version: 'text',
  outcome: 'text',
  created_ms: 'integer',
  posted_ms: 'integer',
  calls: 'text',
  ...detailKinds,
} as const

export type EntryColumn = keyof typeof entryKinds

const columns = Object.keys(entryKinds) as EntryColumn[]

/** The columns that forms 2 and 3 add, after all columns of form 1. */
type LaterColumn = 'calls' | DetailColumn

type ChainedColumn = Exclude<EntryColumn, LaterColumn>

/** The columns that the digest of an entry in form 1 covers, in their order. */
export const chainedColumns = columns.slice(0, columns.indexOf('calls')) as ChainedColumn[]

export type ChainedRow = { readonly [Column in ChainedColumn]: unknown } & {
  readonly [Column in LaterColumn]?: unknown
}

/**
 * Computes the digest of an entry: the form, a colon and a SHA-256 in base 64. The hash covers the form, the previous
 * digest and the columns, each of them written by `field`.
 * @param previous the digest of the previous entry of the account; null for the first entry
 */
export function digestEntry(row: ChainedRow, previous: string | null): string {
  return digestValues(
    columns.map((column) => row[column]),
    previous,
  )
}

/**
 * Does the same as `digestEntry`, with values in the order of `entryKinds`. Reading each value by name would take as
 * long as the hash.
 */
export function digestValues(values: readonly unknown[], previous: string | null): string {
  let count = values.length
  while (count > chainedColumns.length && (values[count - 1] ?? null) === null) count--
  const form = count === chainedColumns.length ? '1' : count === chainedColumns.length + 1 ? '2' : '3'
  if (form === '3') count = values.length
  let text = format(true)
  // Nearly all text is ASCII. So a field's length is first taken as its number of characters, and the whole text
  // is checked once. Counting the octets of each field would add half of the time that the hash takes.
  if (Buffer.byteLength(text) !== text.length) text = format(false)
  return `${form}:${hash('sha256', text, 'base64')}`

  function format(isAscii: boolean): string {
    let text = field(form) + field(previous)
    for (let at = 0; at < count; at++) text += field(values[at], isAscii)
    return text
  }
}

/** Returns the lowest form (1, 2 or 3) that covers all columns which a row uses. */
export function formOf(row: { readonly [Column in LaterColumn]?: unknown }): '1' | '2' | '3' {
  for (const column of detailColumns) if (row[column] !== null && row[column] !== undefined) return '3'
  return row.calls === null || row.calls === undefined ? '1' : '2'
}

/** Formats the columns at the end of a digest's input. Only forms 2 and 3 (newer layouts of an entry) have them. */
export function formatLater(row: { readonly [Column in LaterColumn]?: unknown }, form: string): string {
  let text = form === '1' ? '' : field(row.calls)
  if (form === '3') for (const column of detailColumns) text += field(row[column])
  return text
}

/**
 * Formats the middle part of a digest's input. The database adds the parts that contain the entry's place in the chain.
 */
export function formatContent(row: { readonly [column: string]: unknown }): string {
  let text = ''
  for (const column of contentColumns) text += field(row[column])
  return text
}

const contentColumns = chainedColumns.slice(chainedColumns.indexOf('reference'), chainedColumns.indexOf('posted_ms'))

/** Whether this version knows the form of the digest and can therefore check it. */
export function isKnownForm(digest: string): boolean {
  return /^[123]:/.test(digest)
}

/** One field of a digest's input: its length, a colon, its text. */
export function field(value: unknown, isAscii = false): string {
  if (value === null || value === undefined) return '-'
  const text = String(value)
  return `${typeof value === 'string' && !isAscii ? Buffer.byteLength(value) : text.length}:${text}`
}

/** A head of the ledger. It covers all entries that were posted up to a moment. */
export type Head = {
  momentMs: number
  /**
   * A digest of all accounts, in the byte order of their ids. For each account, it covers field(account id) and
   * field(digest of the last entry at the moment).
   */
  hash: string
}

/**
 * Formats a head of the ledger as one short word for people to keep. The word begins with the version of the format:
 * `1/2026-11-21T15:45:40.362Z/…`.
 */
export function formatHead({ momentMs, hash }: Head): string {
  return `1/${new Date(momentMs).toISOString()}/${hash}`
}

/** Parses a head. The inverse of `formatHead`. @throws RangeError with a message for the person who wrote it */
export function parseHead(text: string): Head {
  const [, time = '', hash = ''] = /^1\/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\/([\w-]{43})$/.exec(text) ?? []
  const momentMs = Date.parse(time)
  if (Number.isNaN(momentMs))
    throw new RangeError(
      `"${text}" is not a head: copy the whole line that ledger verify printed, without the word head`,
    )
  return { momentMs, hash }
}

/**
 * Computes the hash of a head (a digest of all entries). The entries must come account by account, in the byte order of
 * the account ids. Within an account, the oldest entry comes first.
 */
export class HeadHash {
  readonly momentMs: number
  readonly #hash = createHash('sha256')
  #accountId: string | undefined
  #last: string | null = null
  readonly #cutMs: number | undefined
  /** The account's last digest up to `#cutMs`. Used if the account has no correction at `#cutMs`. */
  #lastBeforeCut: string | null = null
  #isCut = false

  /**
   * @param cutMs the moment of a correction, if the head was made before it, by a clock that was ahead. The head covers
   *   neither the correction nor any later entry, although its own moment is later than `cutMs`
   */
  constructor(momentMs: number, cutMs?: number) {
    this.momentMs = momentMs
    this.#cutMs = cutMs
  }

  /**
   * Adds the next entry. A correction counts at `correctedMs`, not at its posting time. So a head that was made after a
   * correction covers the correction and all earlier entries of the account (amends ruling C15).
   * @param correctedMs the moment of the correction; undefined if the entry is not a correction
   */
  note(accountId: string, postedMs: number, digest: string, correctedMs?: number): void {
    if (accountId !== this.#accountId) this.#endAccount()
    this.#accountId = accountId
    // A head from before the correction at `cutMs` covers neither this correction nor later entries of the account.
    if (correctedMs !== undefined && correctedMs === this.#cutMs) this.#isCut = true
    const fromMs = Math.min(postedMs, correctedMs ?? postedMs)
    if (this.#isCut || fromMs > this.momentMs) return
    this.#last = digest
    if (this.#cutMs === undefined || fromMs <= this.#cutMs) this.#lastBeforeCut = digest
  }

  end(): Head {
    this.#endAccount()
    return { momentMs: this.momentMs, hash: this.#hash.digest('base64url') }
  }

  #endAccount(): void {
    const last = this.#isCut ? this.#last : this.#lastBeforeCut
    if (this.#accountId !== undefined && last !== null) this.#hash.update(field(this.#accountId) + field(last))
    this.#last = this.#lastBeforeCut = null
    this.#isCut = false
  }
}

/**
 * Computes the time at which an entry is posted. It is never before the account's previous entry, and always after the
 * last head (ruling C15).
 */
export function postedMs(nowMs: number, previousMs: number, headMs: number): number {
  return Math.max(nowMs, previousMs, headMs + 1)
}

/** The time of the last head may be at most this far ahead of the clock, in ms. */
const aheadMax = 86_400_000

/**
 * Checks the time of the last head (a digest of all entries). Later entries are posted after this time (ruling C15). If
 * the time is missing, nothing separates the entries that the head covers from later entries. If the time is far ahead
 * of the clock, later entries are dated ahead too.
 * @param place the name of the ledger in the messages
 */
export function* findWrongMoment(place: string, momentMs: bigint | undefined, nowMs: number): Iterable<string> {
  if (momentMs === undefined) {
    yield `${place}: the moment of its last head is missing: what is posted may fall among what that head covered`
    return
  }
  if (momentMs <= nowMs + aheadMax) return
  const told = momentMs <= datedMax ? new Date(Number(momentMs)).toISOString() : `${momentMs} ms`
  yield `${place}: its last head was taken at ${told}, and that is more than a day to come`
}
