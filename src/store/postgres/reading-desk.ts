import { createListing } from '../sql/listing.ts'
import type { Database } from './database.ts'
import type { Desk } from './desk.ts'
import { dialect, run, sliceSizes } from './run.ts'

/** Reads debits of requests for people, and writes when keys were last used. */
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

  /** In one order wherever it is done: two replicas know the same keys. What fails is noted again at the next use. */
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
