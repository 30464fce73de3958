import { readAccountRow, readKeyRow } from '../../accounts/book-rows.ts'
import type { AccountChanges } from '../../accounts/live-accounts.ts'
import { registerColumns } from '../../accounts/registers.ts'
import type { Say } from '../serving/thread.ts'
import { createListing } from '../sql/listing.ts'
import { isKeyRead, personColumns } from '../sql/spends.ts'
import type { Row } from '../sql/step.ts'
import type { Desk } from './control.ts'
import type { Database, Transaction } from './database.ts'
import { dialect, run, sliceSizes } from './run.ts'

/** The channel of notices. A notice announces that a change by an operator was committed. */
const changesChannel = 'triwire_changes'

/** The most accounts in one message. Reading a message blocks the serving thread, so it must be short. */
const pageRows = 1_000

/** A number lower than the revision of any change. A revision is the number of a change. */
const start = -1n

type DirectoryDeskOptions = {
  database: Pick<Database, 'query'>
  /** If there are more accounts than this, an account is read only when a request names one of its keys. */
  accountsMax: number
  say: Say
}

/**
 * Sends accounts and keys to the serving thread: the changes of operators and the results of lookups. A notice
 * announces a change, and each heartbeat looks for changes too. Reads run one after the other, so the result of an
 * older read never overwrites a newer one.
 */
export class DirectoryDesk implements Desk {
  readonly answers = { lookUp: (digests: readonly string[]) => this.#inTurn(() => this.#lookUp(digests)) }
  readonly channels = { [changesChannel]: () => void this.#follow().catch(() => {}) }
  readonly #options: DirectoryDeskOptions
  /** All changes up to this revision were reported. Undefined if no change was reported yet. */
  #revision: bigint | undefined
  #hasForeignKeys = false
  /**
   * The number of times that all reported changes were forgotten (`#forget`). A read during which it changes is
   * outdated.
   */
  #era = 0
  /** PostgreSQL's timeline of the server that reported the changes. A promoted standby has another timeline. */
  #timeline: unknown
  #last: Promise<unknown> = Promise.resolve()
  #following: Promise<void> | undefined

  constructor(options: DirectoryDeskOptions) {
    this.#options = options
  }

  /**
   * Forgets the reported changes if the timeline is new. Then a standby was promoted, which may lack some of these
   * changes, whatever its newest revision is.
   */
  async onReached(session: Transaction): Promise<void> {
    const [row] = await session.query(`SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline`)
    if (row!.timeline !== this.#timeline) this.#forget()
    this.#timeline = row!.timeline
    await this.onBeat(session)
    await this.#follow()
  }

  /** Looks for changes, because a notice may be lost with its connection. */
  async onBeat({ query }: Transaction): Promise<void> {
    const [row] = await query('SELECT max(revision) AS newest FROM triwire.accounts')
    const newest = (row!.newest as bigint | null) ?? start
    if (this.#revision === undefined || newest === this.#revision) return
    // A promoted standby that lacks reported changes has a lower revision. All reported changes are then forgotten.
    if (newest < this.#revision) this.#forget()
    void this.#follow().catch(() => {})
  }

  #forget(): void {
    this.#revision = undefined
    this.#era++
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => {})
    return turn
  }

  /**
   * Reads the changes of accounts and keys. Callers that ask before a read begins share its result. Later callers share
   * the next read.
   */
  #follow(): Promise<void> {
    this.#following ??= this.#inTurn(() => {
      this.#following = undefined
      return this.#readChanges()
    })
    return this.#following
  }

  async #readChanges(): Promise<void> {
    const era = this.#era
    let isAnew = this.#revision === undefined
    let revision = this.#revision ?? (await this.#findStart())
    for (;;) {
      const rows = await this.#options.database.query(readPage, [revision])
      const [found] = rows.length > 0 || isAnew ? await this.#options.database.query(readForeign, []) : []
      if (found) this.#hasForeignKeys = found.has as boolean
      // All reported changes were forgotten during this read, so its result is outdated. Another read follows.
      if (era !== this.#era) return
      if (rows.length > 0 || isAnew) this.#tell(rows, isAnew)
      isAnew = false
      revision = (rows.at(-1)?.revision as bigint | undefined) ?? revision
      this.#revision = revision
      if (rows.length === 0) return
    }
  }

  /**
   * Returns the revision after which changes are read. If memory can keep all accounts, this is `start`, so that all
   * are read. Otherwise it is the newest revision.
   */
  async #findStart(): Promise<bigint> {
    const { database, accountsMax } = this.#options
    const [row] = await database.query(
      `SELECT count(*)::int AS known, (SELECT max(revision) FROM triwire.accounts) AS newest
         FROM (SELECT FROM triwire.accounts LIMIT $1) AS few`,
      [accountsMax + 1],
    )
    const { known, newest } = row as { known: number; newest: bigint }
    return known > accountsMax ? newest : start
  }

  async #lookUp(digests: readonly string[]): Promise<undefined> {
    const which = `SELECT account_id FROM triwire.keys k WHERE digest = ANY ($1) AND ${isRead}`
    const rows = await this.#options.database.query(select(`SELECT * FROM triwire.accounts WHERE id IN (${which})`), [
      digests,
    ])
    if (rows.length > 0) this.#tell(rows, false)
  }

  #tell(rows: readonly Row[], isAnew: boolean): void {
    this.#options.say('changes', { ...readChanges(rows), hasForeignKeys: this.#hasForeignKeys, isAnew })
  }
}

const isRead = isKeyRead('k', 'triwire.now_ms()')

const accountColumns = Object.keys(registerColumns('accounts'))

/** Selects whole accounts in one statement, with a row for each valid key. An account without keys has one row. */
function select(accounts: string): string {
  return `SELECT a.revision, ${accountColumns.map((name) => `a.${name} AS of_${name}`).join(', ')},
      coalesce(b.balance, 0) AS of_balance, k.*, NULL AS from_ms, ${personColumns}
    FROM (${accounts}) a
    LEFT JOIN triwire.balances b ON b.account_id = a.id
    LEFT JOIN triwire.keys k ON k.account_id = a.id AND ${isRead}
    LEFT JOIN triwire.persons p ON p.id = k.person`
}

const readForeign = 'SELECT EXISTS (SELECT FROM triwire.keys WHERE origin IS NOT NULL AND revoked_ms IS NULL) AS has'

const readPage = `${select(
  `SELECT * FROM triwire.accounts WHERE revision > $1 ORDER BY revision FETCH FIRST ${pageRows} ROWS WITH TIES`,
)} ORDER BY a.revision`

function readChanges(rows: readonly Row[]): Omit<AccountChanges, 'hasForeignKeys'> {
  const accounts = new Map<unknown, AccountChanges['accounts'][number]>()
  // The spend of budgets is not read here, because the database checks the spend with each request.
  const accountOf = (row: Row) => Object.fromEntries(accountColumns.map((name) => [name, row[`of_${name}`]]))
  for (const row of rows)
    if (!accounts.has(row['of_id']))
      accounts.set(row['of_id'], readAccountRow({ ...accountOf(row), balance: row['of_balance'], from_ms: null }))
  return { accounts: [...accounts.values()], keys: rows.filter(({ id }) => id !== null).map(readKeyRow) }
}

/** Finds the debit of a request, for operators. Also writes when keys were last used. */
export class ReadingDesk implements Desk {
  readonly answers = {
    findDebit: (requestId: string) => run(this.#database, createListing(dialect, sliceSizes).findDebit(requestId)),
  }
  readonly orders = {
    uses: (uses: readonly (readonly [keyId: string, usedMs: number])[]) => void this.#noteUses(uses).catch(() => {}),
  }
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  close(): Promise<void> {
    return this.#database.close()
  }

  /**
   * Writes the last use of keys. Every replica locks the rows in the same order, so that two replicas cannot deadlock.
   * After a failed write, the next use of the key writes the time.
   */
  async #noteUses(uses: readonly (readonly [keyId: string, usedMs: number])[]): Promise<void> {
    const latest = new Map<string, number>()
    for (const [id, usedMs] of uses) latest.set(id, Math.max(usedMs, latest.get(id) ?? 0))
    await this.#database.query(
      `WITH used AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS used (id, ms)),
            locked AS (SELECT k.id FROM triwire.keys k JOIN used USING (id) ORDER BY k.id FOR NO KEY UPDATE OF k)
       UPDATE triwire.keys k SET last_used_ms = used.ms FROM used JOIN locked USING (id)
         WHERE k.id = used.id AND (k.last_used_ms IS NULL OR k.last_used_ms < used.ms)`,
      [[...latest.keys()], [...latest.values()]],
    )
  }
}
