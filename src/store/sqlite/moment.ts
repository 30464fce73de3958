import type { DatabaseSync } from 'node:sqlite'

/**
 * Writes down the moment of a head that is taken now: all that is posted from here on is posted later (ruling C15). It is the
 * earlier of now and the newest entry, so no clock moves it ahead of the entries that it covers (ruling Y15). The caller holds
 * the write lock, so that no post is under way.
 */
export function fixMoment(db: DatabaseSync, nowMs: number): number {
  const fix = db.prepare(
    `INSERT INTO head (id, moment_ms) VALUES (1, min(?1, (SELECT ifnull(max(posted_ms), 0) FROM entries)))
       ON CONFLICT (id) DO UPDATE SET moment_ms = max(moment_ms, excluded.moment_ms) RETURNING moment_ms`,
  )
  return Number(fix.get(nowMs)!.moment_ms)
}
