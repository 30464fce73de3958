import { leaseMs, wasSeen } from '../sql/spends.ts'
import { untoldMs } from '../sql/warnings.ts'
import { calls, windowMs } from './admit.ts'
import { openDatabase } from './database.ts'
import { defineFunction, migrate, refuseEmpty } from './migrate.ts'
import { explainDatabase } from './trouble.ts'

export { leaseMs }

/** A replica that has not been seen for this long has left, in ms. */
const goneMs = 60_000

/** A replica seen within this time counts as living for settings that all must share, in ms. More than `seenMs`. */
const livingMs = 30_000

/** A living replica says so in a table that a crash leaves alone every so often, in ms. */
const seenMs = 20_000

/** So many rows of a table are taken away at once: it must be quick, and what comes of an attack is much. */
export const sweptMax = 20_000

/** A replica that has left is remembered for this long, in ms. */
const rememberedMs = 30 * 24 * 3_600_000

/** Any number that the locks of `migrate` do not have: those who register do it one after the other. */
const registering = 7_411_010

const seenOf = 'greatest(r.seen_ms, (SELECT p.seen_ms FROM triwire.present p WHERE p.replica = r.id))'

/**
 * A replica begins. It is not present before its first `tell`.
 * @returns `id,started` @throws TR005, the message names the living replica that has another seal key
 */
export const register = defineFunction(
  'register',
  `(its_name text, its_version text, its_config text, its_seal text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint; other text; me integer;
BEGIN
  PERFORM pg_advisory_xact_lock(${registering});
  t := triwire.now_ms();
  SELECT r.name INTO other FROM triwire.replicas r
    WHERE r.left_ms IS NULL AND r.seal_fingerprint <> its_seal AND ${wasSeen(seenOf, livingMs, 't')} ORDER BY r.id LIMIT 1;
  IF FOUND THEN RAISE EXCEPTION '%', other USING ERRCODE = '${calls.otherSeal}'; END IF;
  INSERT INTO triwire.replicas (name, version, config_digest, seal_fingerprint, started_ms, seen_ms)
    VALUES (its_name, its_version, its_config, its_seal, t, t) RETURNING id INTO me;
  RETURN me || ',' || t;
END $$`,
)

/** @returns false if the database does not know what this replica holds: the replica is to `tell` it. */
export const beat = defineFunction(
  'beat',
  `(me integer, started bigint, its_config text, its_door text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint := triwire.now_ms(); is_known boolean;
BEGIN
  UPDATE triwire.present p SET seen_ms = t WHERE p.replica = me;
  is_known := FOUND AND EXISTS (SELECT 1 FROM triwire.epoch);
  UPDATE triwire.replicas r SET seen_ms = t, config_digest = its_config, door = its_door
    WHERE r.id = me AND r.started_ms = started
      AND (NOT ${wasSeen('r.seen_ms', seenMs, 't')} OR r.config_digest <> its_config OR r.door IS DISTINCT FROM its_door);
  RETURN is_known;
END $$`,
)

/** The replica holds nothing any more; its places in the windows stay used. */
export const leave = defineFunction(
  'leave',
  `(me integer, started bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE triwire.replicas r SET left_ms = triwire.now_ms() WHERE r.id = me AND r.started_ms = started;
  IF FOUND THEN DELETE FROM triwire.present p WHERE p.replica = me; END IF;
END $$`,
)

/** The living replicas with a different configuration: `id, name, version, config`, for the caller and all others. */
export const livingReplicas = `
  SELECT r.id, r.name, r.version, r.config_digest AS config FROM triwire.replicas r
  WHERE r.left_ms IS NULL AND ${wasSeen(seenOf, livingMs)} ORDER BY r.id`

/** The replicas that hold their lease, without one: `id, name, door`, the oldest first. */
export const otherReplicas = `
  SELECT r.id, r.name, r.door FROM triwire.replicas r
  WHERE r.id <> $1 AND r.left_ms IS NULL AND ${wasSeen(seenOf, leaseMs)} ORDER BY r.id`

/**
 * Tidies up after any replicas: marks those that are gone, and deletes rows that are stale. It waits for no lock, and
 * deletes nothing of a replica that comes back meanwhile. @returns the most rows deleted of one table; `sweptMax`: there
 * may be more
 */
export const sweep = defineFunction(
  'sweep',
  `(me integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint := triwire.now_ms(); gone integer[]; shares_gone integer; failures_gone integer; untold_gone integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(${registering + 1}) THEN RETURN 0; END IF;
  -- Locked: who is locked already is telling, and lives.
  gone := ARRAY(SELECT r.id FROM triwire.replicas r
    WHERE r.id <> me AND (r.left_ms IS NOT NULL OR NOT ${wasSeen(seenOf, goneMs, 't')}) FOR UPDATE SKIP LOCKED);
  UPDATE triwire.replicas r SET left_ms = t WHERE r.id = ANY (gone) AND r.left_ms IS NULL;
  DELETE FROM triwire.present p WHERE p.replica = ANY (gone);
  DELETE FROM triwire.shares s USING (
      SELECT x.scope, x.replica FROM triwire.shares x
      WHERE x.window_ms + ${windowMs} <= t AND (x.replica = ANY (gone) OR (x.replica = me AND x.held = 0))
      LIMIT ${sweptMax} FOR UPDATE SKIP LOCKED) AS idle
    WHERE s.scope = idle.scope AND s.replica = idle.replica;
  GET DIAGNOSTICS shares_gone = ROW_COUNT;
  DELETE FROM triwire.replicas r WHERE r.id = ANY (gone) AND r.left_ms < t - ${rememberedMs};
  DELETE FROM triwire.failures f WHERE f.ip_key IN (SELECT x.ip_key FROM triwire.failures x
    WHERE x.window_ms + ${windowMs} <= t LIMIT ${sweptMax} FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS failures_gone = ROW_COUNT;
  DELETE FROM triwire.cooldowns c WHERE c.place IN (SELECT x.place FROM triwire.cooldowns x
    WHERE x.until_ms <= t FOR UPDATE SKIP LOCKED);
  DELETE FROM triwire.outbox o WHERE o.id IN (SELECT x.id FROM triwire.outbox x
    WHERE x.next_ms < t - ${untoldMs} LIMIT ${sweptMax} FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS untold_gone = ROW_COUNT;
  RETURN greatest(shares_gone, failures_gone, untold_gone);
END $$`,
)

/** A server as the database knows it. Times in Unix milliseconds of the database's clock. */
export type ReplicaRow = {
  id: number
  name: string
  version: string
  config: string
  startedMs: number
  seenMs: number
  /** The moment at which it left, or was taken for gone because nobody had seen it for so long. */
  leftMs: number | undefined
}

const patienceMs = 5_000

/** All that are remembered, the first to start first. @throws StoreError in words for the person at the command line. */
export async function listReplicas(url: string, shown: string): Promise<ReplicaRow[]> {
  const database = openDatabase({ url, max: 1, patienceMs, purpose: 'command' })
  try {
    await refuseEmpty(database, shown)
    await migrate(database, shown, [])
    const rows = await database.query(
      `SELECT r.id, r.name, r.version, r.config_digest, r.started_ms, r.left_ms,
              greatest(r.seen_ms, (SELECT p.seen_ms FROM triwire.present p WHERE p.replica = r.id)) AS seen_ms
       FROM triwire.replicas r ORDER BY r.id`,
    )
    return rows.map((row) => ({
      id: Number(row['id']),
      name: row['name'] as string,
      version: row['version'] as string,
      config: row['config_digest'] as string,
      startedMs: Number(row['started_ms']),
      seenMs: Number(row['seen_ms']),
      leftMs: row['left_ms'] === null ? undefined : Number(row['left_ms']),
    }))
  } catch (error) {
    throw explainDatabase(error, shown)
  } finally {
    await database.close()
  }
}
