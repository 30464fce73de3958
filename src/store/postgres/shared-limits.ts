import { windowMs } from '../../accounts/limits.ts'
import type { CountedFailures } from '../../accounts/remote-throttle.ts'
import type { Cooldown } from '../../accounts/server-store.ts'
import type { Transaction } from './database.ts'
import { call, defineFunction } from './migrate.ts'

/**
 * Counts failed authentications (ruling R4) of several addresses in one call. The database adds the passed numbers to
 * its counts. A call whose outcome is unknown is not repeated, because that could count failures twice.
 * @returns for each address, in the order given, `count,ms until its window ends`, separated by semicolons
 */
export const countFailures = defineFunction(
  'count_failures',
  `(ip_keys text[], counts integer[]) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint := triwire.now_ms(); f record; told text := '';
BEGIN
  -- The caller sorts the addresses. So all calls lock rows in the same order, and none deadlock.
  FOR i IN 1 .. cardinality(ip_keys) LOOP
    INSERT INTO triwire.failures AS x (ip_key, window_ms, count) VALUES (ip_keys[i], t, counts[i])
      ON CONFLICT (ip_key) DO UPDATE SET
        window_ms = CASE WHEN x.window_ms BETWEEN t - ${windowMs - 1} AND t + 1000 THEN x.window_ms ELSE t END,
        count = excluded.count + CASE WHEN x.window_ms BETWEEN t - ${windowMs - 1} AND t + 1000 THEN x.count ELSE 0 END
      RETURNING x.window_ms, x.count INTO f;
    told := told || ';' || f.count || ',' || (f.window_ms + ${windowMs} - t);
  END LOOP;
  RETURN substr(told, 2);
END $$`,
)

/**
 * Adds failed authentications to the counts of their addresses, and returns these counts.
 * @param failures the number of new failures of each address, sorted by address
 * @throws what the database throws; then it is unknown whether the failures were counted
 */
export async function readFailures(
  database: Transaction,
  failures: readonly (readonly [ipKey: string, count: number])[],
): Promise<CountedFailures[]> {
  const values = [failures.map(([ipKey]) => ipKey), failures.map(([, count]) => count)]
  return (await call<string>(database, countFailures, values)).split(';').map((text) => {
    const [count, endsInMs] = text.split(',').map(Number)
    return { count: count!, endsInMs: endsInMs! }
  })
}

/** The channel that announces changed cooldowns. A notice has no payload, because a replica then reads the table. */
export const cooldownsChannel = 'triwire_cooldowns'

/** The cooldown of a hundred years by which a server tells the others that an upstream account is disabled. */
export const disabled = {
  forMs: 100 * 365 * 86_400_000,
  cause: 'disabled',
  tell: 'account',
  cool: 'now',
} as const satisfies Omit<Cooldown, 'place'>

/**
 * SQL: whether a cooldown counts (SCA-13). A cooldown takes five minutes at most. A row with a much later end was
 * written before the clock was set back, and does not count. The row of a disabled account always counts.
 */
const mayLast = (row: string, nowMs: string) =>
  `(${row}.cause = '${disabled.cause}' OR ${row}.until_ms <= ${nowMs} + 600000)`

/** Sets a cooldown of an upstream account for all replicas. If there is one already, the later end is kept. */
export const cool = defineFunction(
  'cool',
  `(its_place text, for_ms bigint, its_cause text, its_tell text, its_cool text, me text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint := triwire.now_ms();
BEGIN
  INSERT INTO triwire.cooldowns AS c (place, until_ms, cause, tell, cool, met_by)
    VALUES (its_place, t + for_ms, its_cause, its_tell, its_cool, me)
    ON CONFLICT (place) DO UPDATE SET until_ms = excluded.until_ms, cause = excluded.cause, tell = excluded.tell,
      cool = excluded.cool, met_by = excluded.met_by
    WHERE c.until_ms < excluded.until_ms OR NOT ${mayLast('c', 't')};
  IF FOUND THEN NOTIFY ${cooldownsChannel}; END IF;
END $$`,
)

/** Ends a cooldown early. Replicas notice that its row is gone. */
export const lift = defineFunction(
  'lift',
  `(its_place text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  DELETE FROM triwire.cooldowns c WHERE c.place = its_place;
  IF FOUND THEN NOTIFY ${cooldownsChannel}; END IF;
END $$`,
)

/**
 * SQL: the model, upstream and account of a place (`placeOf`), as text. A new key or address does not change this text.
 */
const serviceOf = (place: string) =>
  `CASE WHEN ${place} LIKE '[%' THEN json_build_array(${place}::json->0, ${place}::json->1, ${place}::json->4)::text ELSE ${place} END`

/**
 * Enables a place, because an operator asked for it `ago_ms` ago. All places with the same model and upstream account
 * are enabled, because another server may know the account with another key.
 *
 * A place that another server disabled later stays disabled. All rows of disabled places last equally long, so the end
 * of a row shows when it was written. A row that seems to be written in the future is deleted, because the clock was
 * set back since.
 */
export const enable = defineFunction(
  'enable',
  `(its_place text, ago_ms bigint, me text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  DELETE FROM triwire.cooldowns c WHERE c.cause = '${disabled.cause}' AND ${serviceOf('c.place')} = ${serviceOf('its_place')}
    AND (c.met_by = me OR c.until_ms - ${disabled.forMs} NOT BETWEEN triwire.now_ms() - ago_ms + 1 AND triwire.now_ms());
  IF FOUND THEN NOTIFY ${cooldownsChannel}; END IF;
END $$`,
)

/** SQL that selects the cooldowns that have not ended. */
export const cooling = `
  SELECT place, until_ms, until_ms - triwire.now_ms() AS for_ms, cause, tell, cool, met_by FROM triwire.cooldowns c
  WHERE until_ms > triwire.now_ms() AND ${mayLast('c', 'triwire.now_ms()')}`
