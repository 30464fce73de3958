import type { Cooldown } from '../../accounts/server-store.ts'
import type { Transaction } from './database.ts'
import { cool, cooling, disabled, enable, lift } from './shared-limits.ts'

/** Makes a statement's commit wait until the change is on the disk. Cooldowns are written without this wait. */
const durably = `set_config('synchronous_commit', 'on', true)`

/**
 * The cooldowns of all replicas: times in which an upstream account is not used. After a notice of a change the whole
 * table is read, so that no change is missed. A known cooldown is reported again only if its end has moved to a later
 * time.
 */
export class CooldownBoard {
  readonly #database: Transaction
  readonly #say: BoardListener
  readonly #me: () => string
  readonly #told = new Map<string, BoardEntry>()
  /**
   * Entries that this server wrote and has not read back yet. If such an entry is not in the table, another server has
   * lifted the cooldown.
   */
  readonly #written = new Map<string, BoardEntry>()

  /** Creates the board. @param me returns the name of this server, as people see it */
  constructor(database: Transaction, me: () => string, say: BoardListener) {
    this.#database = database
    this.#me = me
    this.#say = say
  }

  /**
   * Adds a cooldown to the board.
   * @throws what the database throws; then other replicas must notice the fault themselves
   */
  async cool(cooldown: Cooldown): Promise<void> {
    await this.#write(cooldown, '')
  }

  /**
   * Disables a place, that is, a model at an upstream account.
   * @param agoMs the time since an operator asked for this, in ms
   * @throws what the database throws; then other replicas do not know that the place is disabled
   */
  disable(place: string, agoMs: number): Promise<void> {
    return this.#write({ place, ...disabled, forMs: disabled.forMs - agoMs }, `${durably}, `)
  }

  /**
   * Enables a place (a model at an upstream account) again. If another server has disabled the place after the
   * operator's request, the place stays disabled.
   * @param agoMs the time since the operator's request, in ms
   * @throws what the database throws
   */
  async enable(place: string, agoMs: number): Promise<void> {
    await this.#database.query(`SELECT ${durably}, ${enable.name}($1, $2, $3)`, [place, agoMs, this.#me()])
  }

  /** Lifts a cooldown. @throws what the database throws; then other replicas do not know that it was lifted */
  async lift(place: string): Promise<void> {
    await this.#database.query(`SELECT ${durably}, ${lift.name}($1)`, [place])
  }

  async #write({ place, forMs, cause, tell, cool: kind }: Cooldown, before: string): Promise<void> {
    const values = [place, Math.ceil(forMs), cause, tell, kind, this.#me()]
    await this.#database.query(`SELECT ${before}${cool.name}($1, $2, $3, $4, $5, $6)`, values)
    this.#written.set(place, { untilMs: BigInt(Date.now() + Math.ceil(forMs)), cause })
  }

  /** Reads the table and reports changes. Called at the start, on a notice, and after a connection was lost. */
  async look(): Promise<void> {
    // The query can miss entries that are written while it runs. So only entries from before the query are compared.
    const written = [...this.#written]
    const rows = (await this.#database.query(cooling)) as CooldownRow[]
    const now = new Set(rows.map(({ place }) => place))
    for (const [place, told] of written) if (this.#written.get(place) === told) this.#written.delete(place)
    for (const [place, { untilMs, cause }] of new Map([...written, ...this.#told])) {
      if (now.has(place)) continue
      this.#told.delete(place)
      // A cooldown whose time is over has ended by itself, and is not reported as lifted.
      if (untilMs > Date.now() + aheadMs) this.#say.lifted({ place, cause })
    }
    for (const { place, until_ms, for_ms, cause, tell, cool, met_by } of rows) {
      const told = this.#told.get(place)
      if (told?.untilMs === until_ms) continue
      // An earlier end shows that the known cooldown was lifted, and that a second cooldown has begun since.
      if (told && until_ms < told.untilMs) this.#say.lifted({ place, cause: told.cause })
      this.#told.set(place, { untilMs: until_ms, cause })
      const by = met_by === this.#me() ? undefined : (met_by ?? undefined)
      this.#say.cooled({ place, forMs: Number(for_ms), cause, tell, cool, by })
    }
  }
}

type BoardListener = { cooled(cooldown: Cooldown): void; lifted(lifted: Pick<Cooldown, 'place' | 'cause'>): void }

/**
 * An entry of the board. `untilMs` is by the database's clock, or by this server's clock for an entry that it wrote.
 */
type BoardEntry = { untilMs: bigint; cause: string }

/**
 * The largest assumed difference of two clocks, in ms. A cooldown that ends within this time is not reported as lifted.
 */
const aheadMs = 1_000

type CooldownRow = Pick<Cooldown, 'place' | 'cause' | 'tell' | 'cool'> & {
  until_ms: bigint
  for_ms: bigint
  met_by: string | null
}
