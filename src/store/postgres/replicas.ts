import { windowMs } from '../../accounts/limits.ts'
import { leaseMs, wasSeen } from '../sql/spends.ts'
import { untoldMs } from '../sql/warnings.ts'
import { calls } from './admit.ts'
import { openDatabase } from './database.ts'
import { defineFunction, migrate, refuseEmpty } from './migrate.ts'
import { explainDatabase } from './trouble.ts'

export { leaseMs }

/** A replica counts as gone if it was not seen for this time, in ms. */
const goneMs = 60_000

/**
 * A replica counts as living if it was seen within this time, in ms. The time is longer than `seenMs`, so that no
 * living replica is overlooked.
 */
const livingMs = 30_000

/** How often a replica writes its heartbeat to the table that survives a crash of the database, in ms. */
const seenMs = 20_000

/** The most rows that one clean-up deletes from a table. So a clean-up is quick even after an attack left many rows. */
export const sweptMax = 20_000

/** How long a replica that has left stays in the table, in ms. */
const rememberedMs = 30 * 24 * 3_600_000

/** The number of the lock for registering. It is arbitrary, but differs from the numbers in `migrate`. */
const registering = 7_411_010

const seenOf = 'greatest(r.seen_ms, (SELECT p.seen_ms FROM triwire.present p WHERE p.replica = r.id))'

/**
 * Registers a replica. The replica counts as present only after its first `tell`, which writes its figures.
 * @returns `id,started`
 * @throws TR005; the message names the living replica that has another seal key
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

/**
 * Writes a heartbeat of a replica.
 * @returns false if the database does not know the replica's figures; then the replica must call `tell`
 */
export const beat = defineFunction(
  'beat',
  `(me integer, started bigint, its_config text, its_door text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint := triwire.now_ms(); is_known boolean;
BEGIN
  -- A promoted standby may have given the number to another replica, which has another start.
  UPDATE triwire.present p SET seen_ms = t
    WHERE p.replica = me AND EXISTS (SELECT 1 FROM triwire.replicas r WHERE r.id = me AND r.started_ms = started);
  is_known := FOUND AND EXISTS (SELECT 1 FROM triwire.epoch);
  UPDATE triwire.replicas r SET seen_ms = t, config_digest = its_config, door = its_door
    WHERE r.id = me AND r.started_ms = started
      AND (NOT ${wasSeen('r.seen_ms', seenMs, 't')} OR r.config_digest <> its_config OR r.door IS DISTINCT FROM its_door);
  RETURN is_known;
END $$`,
)

/** Ends a replica's presence, which frees its holds (reserved credit). Its requests still count in the windows. */
export const leave = defineFunction(
  'leave',
  `(me integer, started bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE triwire.replicas r SET left_ms = triwire.now_ms() WHERE r.id = me AND r.started_ms = started;
  IF FOUND THEN DELETE FROM triwire.present p WHERE p.replica = me; END IF;
END $$`,
)

/** The living replicas, including the caller: `id, name, version, config`. The caller compares their configurations. */
export const livingReplicas = `
  SELECT r.id, r.name, r.version, r.config_digest AS config FROM triwire.replicas r
  WHERE r.left_ms IS NULL AND ${wasSeen(seenOf, livingMs)} ORDER BY r.id`

/** The other living replicas: `id, name, door`, the oldest first. The parameter is the caller's id. */
export const otherReplicas = `
  SELECT r.id, r.name, r.door FROM triwire.replicas r
  WHERE r.id <> $1 AND r.left_ms IS NULL AND ${wasSeen(seenOf, leaseMs)} ORDER BY r.id`

/**
 * Cleans up after all replicas: marks replicas that have left, and deletes outdated rows. It skips locked rows, because
 * a replica that locks its rows is alive.
 * @returns the largest number of rows deleted from a table. If it is `sweptMax`, more may be left
 */
export const sweep = defineFunction(
  'sweep',
  `(me integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint := triwire.now_ms(); gone integer[]; shares_gone integer; failures_gone integer; untold_gone integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(${registering + 1}) THEN RETURN 0; END IF;
  -- A row that is locked already is skipped: its replica is calling tell, so it lives.
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

/** A server as the database knows it. Times are Unix milliseconds of the database's clock. */
export type ReplicaRow = {
  id: number
  name: string
  version: string
  config: string
  startedMs: number
  seenMs: number
  /** When the replica left, or when others noticed that it had not been seen for `goneMs`. */
  leftMs: number | undefined
}

const patienceMs = 5_000

/**
 * Lists all servers that the database remembers, in the order of their starts.
 * @throws StoreError with a message for people
 */
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
