import { nanosMax } from '../../accounts/credit.ts'
import type { DeskVerdict } from '../../accounts/desk.ts'
import { windowMs } from '../../accounts/limits.ts'
import { wasSeen } from '../sql/spends.ts'
import { defineFunction } from './migrate.ts'

/*
 * Admission over all replicas (rulings R1, C2, R15, Y20).
 *
 * A scope is an account, or a key or a person with limits of its own. A replica knows for certain only the requests
 * that it admitted itself. So it writes its own figures for each scope: its holds, and its places in the rate window.
 * No other replica writes these rows. A figure replaces the one before, and nothing is ever added to a row. So:
 *
 *     a call that is repeated after an unknown outcome changes nothing,
 *     a dead replica's holds no longer count when its lease is over,
 *     a database that lost these tables gets them again from the replicas.
 *
 * The law for all replicas together (accounts/live-accounts.ts has the law for one server):
 *
 *     overdraft ≤ Σ max(0, actual − hold) + the last hold + Σ holds of replicas that outlive their lease
 *
 * The law is true because a hold is lowered only after its debit was committed. All times are by the database's clock.
 */

/** The SQLSTATEs that our functions raise. */
export const calls = {
  /** The database does not know the figures of this replica: call `tell` first. */
  tellFirst: 'TR001',
  /** Other replicas may have holds (reserved credit) that they have not written yet. */
  othersSilent: 'TR002',
  /** A call with newer figures has overtaken this one. */
  late: 'TR003',
  /** The database does not know this replica. */
  unknownReplica: 'TR004',
  /** A living replica has another seal key. */
  otherSeal: 'TR005',
} as const

/**
 * The character for each verdict in the result of `admit`. There is one character for each ask (the question whether a
 * request may run). If several refusals apply, the first is returned, in the order account, person, key (R1).
 */
export const verdictCodes = {
  admitted: '0',
  spent: '1',
  held: '2',
  account_budget_spent: '3',
  account_budget_held: '4',
  budget_spent: '5',
  budget_held: '6',
  window: '7',
  key_window: '8',
  person_budget_spent: '9',
  person_budget_held: 'a',
  person_window: 'b',
} as const satisfies Record<DeskVerdict, string>

/**
 * After the database has lost figures of replicas, `admit` fails for this time, in ms, or until all figures are sent
 * again.
 */
const graceMs = 3_000

/**
 * SQL: what is left of a budget, at most the highest number of 64 bits. The spend is negative if a debit of an earlier
 * period was given back.
 */
const leftOf = (spent: string) => `budgets[i] - greatest(${spent}, budgets[i] - ${nanosMax})`

/**
 * Locks the scopes, reads the figures of the other replicas, judges the asks, and writes the caller's new figures. A
 * scope is an account, a key or a person. An ask is the question whether a request may run.
 *
 * In:
 * - the caller's number, the lease of a replica in ms, and the number of this call, which grows with each call;
 * - for each scope, in the order of their names: the caller's own figures, its limits, and its number of asks. `keys`
 *   is true for keys and people, false for accounts, which have a balance. `limits` and `budgets` are null if the scope
 *   has none;
 * - for each ask, account by account: its hold, and whether rate windows count it. Also the positions of its key and
 *   person among the scopes (0: none);
 * - when the caller registered. A promoted standby may have given the caller's number to another replica, which
 *   registered later.
 *
 * Out: `verdicts;now;scope;scope…` with a scope as `window,own places,all places,credit,free,renews,left,spare`:
 * - `window`: the beginning of the scope's rate window; 0 if none is open;
 * - `own places` and `all places`: the requests in that window, of the caller and of all replicas;
 * - `credit` and `free`: the amount that the scope may spend, and the part of this that no request holds. Both are
 *   empty if nothing limits the scope;
 * - `renews`: when the spend of the scope's budget is reset; empty if nothing was spent;
 * - `left` and `spare`: the same as `credit` and `free` for the budget of an account; empty if the account has none.
 */
export const admit = defineFunction(
  'admit',
  `(me integer, lease_ms integer, call_turn bigint,
    scopes text[], helds bigint[], windows bigint[], takens integer[], limits integer[], budgets bigint[], keys boolean[], counts integer[],
    ask_keys integer[], ask_persons integer[], ask_holds bigint[], ask_places boolean[], started bigint)
RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  t bigint; seen bigint; since bigint; share record; n integer := cardinality(scopes); j integer := 0; k integer; p integer; narrow integer;
  theirs integer; began bigint; held_by_others bigint; amount bigint; spent bigint; renewal bigint; verdict text;
  credits bigint[] := array_fill(NULL::bigint, ARRAY[n]); frees bigint[] := credits; renews bigint[] := credits; alls integer[] := takens;
  -- For accounts with a budget: what is left of it, and the part of that which is not held. All holds of an account count in it.
  lefts bigint[] := credits; spares bigint[] := credits;
  judged text := ''; told text := '';
BEGIN
  -- All calls lock scopes in the same order, so no two wait for each other. Later statements have newer snapshots, so they
  -- read what the previous call has written.
  FOR i IN 1 .. n LOOP PERFORM pg_advisory_xact_lock(hashtextextended(scopes[i], 7)); END LOOP;
  t := triwire.now_ms();
  SELECT (SELECT p.seen_ms FROM triwire.present p JOIN triwire.replicas r ON r.id = p.replica WHERE p.replica = me AND r.started_ms = started),
    (SELECT max(e.since_ms) FROM triwire.epoch e) INTO seen, since;
  IF seen IS NULL OR NOT ${wasSeen('seen', 'lease_ms', 't')} OR since IS NULL THEN RAISE EXCEPTION 'tell first' USING ERRCODE = '${calls.tellFirst}'; END IF;
  IF since > t - ${graceMs} THEN
    PERFORM 1 FROM triwire.replicas r WHERE r.left_ms IS NULL AND NOT EXISTS (SELECT 1 FROM triwire.present p WHERE p.replica = r.id);
    IF FOUND THEN RAISE EXCEPTION 'others have not told yet' USING ERRCODE = '${calls.othersSilent}'; END IF;
  END IF;

  FOR i IN 1 .. n LOOP
    -- A window that begins in the future comes from before the clock was set back.
    began := CASE WHEN windows[i] BETWEEN t - ${windowMs - 1} AND t + 1000 THEN windows[i] ELSE 0 END;
    theirs := 0; held_by_others := 0;
    FOR share IN
      SELECT s.replica, s.turn, s.window_ms, s.taken, CASE WHEN ${wasSeen('p.seen_ms', 'lease_ms', 't')} THEN s.held ELSE 0 END AS held
      FROM triwire.shares s LEFT JOIN triwire.present p ON p.replica = s.replica WHERE s.scope = scopes[i]
    LOOP
      IF share.replica = me THEN
        IF share.turn >= call_turn THEN RAISE EXCEPTION 'a later call was faster' USING ERRCODE = '${calls.late}'; END IF;
        CONTINUE;
      END IF;
      held_by_others := held_by_others + share.held;
      CONTINUE WHEN share.window_ms NOT BETWEEN t - ${windowMs - 1} AND t + 1000 OR share.window_ms < began;
      theirs := share.taken + CASE WHEN share.window_ms = began THEN theirs ELSE 0 END;
      began := share.window_ms;
    END LOOP;
    -- Read after the shares: a hold that has ended by now has its debit in the balance. The lock of the scope does not
    -- keep this order, since tell takes no such lock.
    IF NOT keys[i] THEN
      SELECT b.balance INTO amount FROM triwire.balances b WHERE b.account_id = scopes[i];
      amount := coalesce(amount, 0);
      IF budgets[i] IS NOT NULL THEN
        SELECT s.spent, s.until_ms INTO spent, renewal FROM triwire.spends s WHERE s.scope = scopes[i] AND s.until_ms > t;
        lefts[i] := ${leftOf('coalesce(spent, 0)')};
        spares[i] := lefts[i] - helds[i] - held_by_others;
        renews[i] := renewal;
      END IF;
    ELSIF budgets[i] IS NULL THEN amount := NULL;
    ELSE
      SELECT s.spent, s.until_ms INTO amount, renewal FROM triwire.spends s WHERE s.scope = scopes[i] AND s.until_ms > t;
      amount := ${leftOf('coalesce(amount, 0)')};
      renews[i] := renewal;
    END IF;
    IF windows[i] <> began THEN takens[i] := 0; END IF;
    windows[i] := began;
    alls[i] := takens[i] + theirs;
    credits[i] := amount;
    frees[i] := amount - helds[i] - held_by_others;
  END LOOP;

  -- All figures are read. The verdicts follow from them.
  FOR i IN 1 .. n LOOP
    FOR ask IN 1 .. counts[i] LOOP
      j := j + 1;
      k := ask_keys[j];
      p := ask_persons[j];
      verdict := CASE
        WHEN credits[i] <= 0 THEN '${verdictCodes.spent}'
        WHEN frees[i] <= 0 THEN '${verdictCodes.held}'
        WHEN lefts[i] <= 0 THEN '${verdictCodes.account_budget_spent}'
        WHEN spares[i] <= 0 THEN '${verdictCodes.account_budget_held}'
        WHEN p > 0 AND credits[p] <= 0 THEN '${verdictCodes.person_budget_spent}'
        WHEN p > 0 AND frees[p] <= 0 THEN '${verdictCodes.person_budget_held}'
        WHEN k > 0 AND credits[k] <= 0 THEN '${verdictCodes.budget_spent}'
        WHEN k > 0 AND frees[k] <= 0 THEN '${verdictCodes.budget_held}'
        WHEN ask_places[j] AND alls[i] >= limits[i] THEN '${verdictCodes.window}'
        WHEN ask_places[j] AND p > 0 AND alls[p] >= limits[p] THEN '${verdictCodes.person_window}'
        WHEN ask_places[j] AND k > 0 AND alls[k] >= limits[k] THEN '${verdictCodes.key_window}'
        ELSE '${verdictCodes.admitted}' END;
      judged := judged || verdict;
      CONTINUE WHEN verdict <> '${verdictCodes.admitted}';
      amount := ask_holds[j];
      helds[i] := helds[i] + amount;
      frees[i] := frees[i] - amount;
      spares[i] := spares[i] - amount;
      IF ask_places[j] THEN
        IF windows[i] = 0 THEN windows[i] := t; END IF;
        takens[i] := takens[i] + 1;
        alls[i] := alls[i] + 1;
      END IF;
      CONTINUE WHEN k + p = 0;
      FOREACH narrow IN ARRAY ARRAY[k, p] LOOP
        CONTINUE WHEN narrow = 0;
        helds[narrow] := helds[narrow] + amount;
        frees[narrow] := frees[narrow] - amount;
        CONTINUE WHEN NOT ask_places[j];
        IF windows[narrow] = 0 THEN windows[narrow] := t; END IF;
        takens[narrow] := takens[narrow] + 1;
        alls[narrow] := alls[narrow] + 1;
      END LOOP;
    END LOOP;
  END LOOP;

  FOR i IN 1 .. n LOOP
    INSERT INTO triwire.shares AS s (scope, replica, turn, held, window_ms, taken)
      VALUES (scopes[i], me, call_turn, helds[i], windows[i], takens[i])
      ON CONFLICT (scope, replica) DO UPDATE
      SET turn = excluded.turn, held = excluded.held, window_ms = excluded.window_ms, taken = excluded.taken;
    told := told || ';' || windows[i] || ',' || takens[i] || ',' || alls[i] || ',' || coalesce(credits[i]::text, '') || ',' || coalesce(frees[i]::text, '') || ',' || coalesce(renews[i]::text, '')
      || ',' || coalesce(lefts[i]::text, '') || ',' || coalesce(spares[i]::text, '');
  END LOOP;
  RETURN judged || ';' || t || told;
END $$`,
)

/**
 * Writes all figures of a replica. This is done on every new connection, and when the database has lost the figures.
 *
 * If one call cannot carry all figures, several calls follow each other. `since_turn` is the number of the first call.
 * The last call deletes the replica's older rows, and makes the replica alive again. Meanwhile the replica must not
 * call `admit`.
 */
export const tell = defineFunction(
  'tell',
  `(me integer, started bigint, since_turn bigint, call_turn bigint, is_last boolean,
    scopes text[], helds bigint[], windows bigint[], takens integer[])
RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE t bigint := triwire.now_ms();
BEGIN
  -- The lock of this row keeps out a sweep that removes dead replicas.
  UPDATE triwire.replicas r SET seen_ms = t, left_ms = NULL WHERE r.id = me AND r.started_ms = started;
  IF NOT FOUND THEN RAISE EXCEPTION 'no such replica' USING ERRCODE = '${calls.unknownReplica}'; END IF;
  INSERT INTO triwire.shares AS s (scope, replica, turn, held, window_ms, taken)
    SELECT o.scope, me, call_turn, o.held, o.window_ms, o.taken
    FROM unnest(scopes, helds, windows, takens) AS o (scope, held, window_ms, taken) ORDER BY o.scope
    ON CONFLICT (scope, replica) DO UPDATE
    SET turn = excluded.turn, held = excluded.held, window_ms = excluded.window_ms, taken = excluded.taken
    WHERE s.turn < excluded.turn;
  IF NOT is_last THEN RETURN; END IF;
  DELETE FROM triwire.shares s WHERE s.replica = me AND s.turn < since_turn;
  INSERT INTO triwire.epoch (since_ms) VALUES (t) ON CONFLICT DO NOTHING;
  INSERT INTO triwire.present (replica, seen_ms) VALUES (me, t) ON CONFLICT (replica) DO UPDATE SET seen_ms = excluded.seen_ms;
END $$`,
)
