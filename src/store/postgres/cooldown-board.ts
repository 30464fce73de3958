import type { Cooldown } from '../../accounts/server-store.ts'
import type { Transaction } from './database.ts'
import { cool, cooling } from './shared-limits.ts'

/**
 * Which upstream accounts all replicas leave alone. Whoever is told that the table has changed looks at all of it, so that
 * nothing is missed; what was told before is told again only when it lasts longer.
 */
export class CooldownBoard {
  readonly #database: Transaction
  readonly #hear: (cooldown: Cooldown) => void
  readonly #toldUntilMs = new Map<string, bigint>()

  constructor(database: Transaction, hear: (cooldown: Cooldown) => void) {
    this.#database = database
    this.#hear = hear
  }

  /** @throws what the database throws: then the others find out for themselves. */
  async cool({ place, forMs, cause, tell, cool: kind }: Cooldown): Promise<void> {
    await this.#database.query(`SELECT ${cool.name}($1, $2, $3, $4, $5)`, [place, Math.ceil(forMs), cause, tell, kind])
  }

  /** At the start, when the channel says so, and behind a connection that was lost. */
  async look(): Promise<void> {
    const rows = (await this.#database.query(cooling)) as Row[]
    const now = new Set(rows.map(({ place }) => place))
    for (const place of this.#toldUntilMs.keys()) if (!now.has(place)) this.#toldUntilMs.delete(place)
    for (const { place, until_ms, for_ms, cause, tell, cool } of rows) {
      if (until_ms <= (this.#toldUntilMs.get(place) ?? 0n)) continue
      this.#toldUntilMs.set(place, until_ms)
      this.#hear({ place, forMs: Number(for_ms), cause, tell, cool })
    }
  }
}

type Row = Pick<Cooldown, 'place' | 'cause' | 'tell' | 'cool'> & { until_ms: bigint; for_ms: bigint }
