import { type NoticedNeed, needKeptMs } from '../../accounts/warnings.ts'
import { type Dialect, insert, isOneOf, type Put } from './dialect.ts'
import { readNowMs } from './moments.ts'
import { ask, askOne, execute, inTransaction, rowsOf, type StoreStep } from './step.ts'

type KnownNeed = { sinceMs: number; goneMs: number | undefined; isTold: boolean }

/**
 * Records the needs that a server finds now, and when they began. A need is something that an operator should act on.
 * Needs that the server does not find are marked. They are deleted after no server has found them for `needKeptMs`.
 * @param isTelling true to put a warning for webhooks into the outbox. Only the first server that finds a need does so
 * @returns when each need began, in Unix milliseconds, by id
 */
export function* noteNeeds(
  dialect: Dialect,
  needs: readonly NoticedNeed[],
  isTelling: boolean,
): StoreStep<Map<string, number>> {
  const known = yield* readNeeds(dialect)
  const ids = new Set(needs.map(({ id }) => id))
  const isFresh = needs.every(({ id }) => {
    const one = known.get(id)
    return one !== undefined && one.goneMs === undefined && (one.isTold || !isTelling)
  })
  const isSettled = [...known].every(([id, { goneMs }]) => ids.has(id) || goneMs !== undefined)
  // Needs that are already marked as gone cause no write now. They are deleted together with the next change.
  if (!isFresh || !isSettled) yield* inTransaction(writeNeeds(dialect, needs, ids, isTelling))
  const noted = isFresh ? known : yield* readNeeds(dialect)
  return new Map(needs.flatMap(({ id }) => (noted.has(id) ? [[id, noted.get(id)!.sinceMs] as const] : [])))
}

function* readNeeds(dialect: Dialect): StoreStep<Map<string, KnownNeed>> {
  const rows = yield* ask(dialect, () => `SELECT id, since_ms, gone_ms, is_told FROM ${dialect.schema}.needs`)
  return new Map(
    rows.map(({ id, since_ms, gone_ms, is_told }) => [
      id as string,
      {
        sinceMs: Number(since_ms),
        goneMs: gone_ms === null ? undefined : Number(gone_ms),
        isTold: Number(is_told) === 1,
      },
    ]),
  )
}

function* writeNeeds(
  dialect: Dialect,
  needs: readonly NoticedNeed[],
  ids: ReadonlySet<string>,
  isTelling: boolean,
): StoreStep<void> {
  const needsTable = `${dialect.schema}.needs`
  const nowMs = yield* readNowMs(dialect)
  yield* execute(dialect, (put) => `DELETE FROM ${needsTable} WHERE gone_ms < ${put(nowMs - needKeptMs)}`)
  for (const { id } of needs) {
    const { text, values } = insert(dialect, 'needs', { id, since_ms: nowMs, gone_ms: null, is_told: 0 })
    yield* rowsOf({ text: `${text} ON CONFLICT (id) DO NOTHING`, values })
  }
  const isFound = (put: Put) => isOneOf(put, 'id', [...ids])
  yield* execute(
    dialect,
    (put) => `UPDATE ${needsTable} SET gone_ms = NULL WHERE gone_ms IS NOT NULL AND ${isFound(put)}`,
  )
  yield* execute(
    dialect,
    (put) => `UPDATE ${needsTable} SET gone_ms = ${put(nowMs)} WHERE gone_ms IS NULL AND NOT (${isFound(put)})`,
  )
  if (!isTelling) return
  for (const { id, data } of needs) {
    // If two servers find a need at the same time, only one of them changes the row.
    const told = yield* askOne(
      dialect,
      (put) => `UPDATE ${needsTable} SET is_told = 1 WHERE id = ${put(id)} AND is_told = 0 RETURNING since_ms`,
    )
    if (!told) continue
    const warning = { id: `needs_changed:${id}:${told['since_ms']}`, event: 'needs_changed' }
    const row = { ...warning, data: JSON.stringify(data), at_ms: nowMs, next_ms: nowMs }
    const { text, values } = insert(dialect, 'outbox', row)
    yield* rowsOf({ text: `${text} ON CONFLICT (id) DO NOTHING`, values })
  }
}
