import { entryKinds } from '../../accounts/chain.ts'
import { apartMaxMs } from '../../accounts/clock.ts'
import { nanosMax } from '../../accounts/credit.ts'
import { givenColumns } from '../../accounts/entry-row.ts'
import { registers } from '../../accounts/registers.ts'
import { isSpending, selectBudgeted } from '../sql/budgeted.ts'
import { countedMs } from '../sql/entries.ts'
import { defineFunction, locks } from './migrate.ts'
import { beginDetails } from './schema.ts'

/** The columns of an entry that the caller passes. The function computes the others from the chain's last entry. */
const names = ['id', ...givenColumns] as const
/**
 * The columns of `names` that the function reads. It needs them to decide whether to post an entry, and to compute the
 * columns that are not in `names`.
 */
const judged = [
  'id',
  'account_id',
  'kind',
  'amount',
  'reference',
  'key_id',
  'person',
  'usage_source',
  'created_ms',
  'effective',
] as const

/** Returns SQL that declares these columns of a JSON row, with their types. */
function typed(columns: readonly (typeof names)[number][]): string {
  return columns
    .map((name) => `${name} ${name === 'id' ? 'uuid' : entryKinds[name] === 'text' ? 'text' : 'bigint'}`)
    .join(', ')
}

/**
 * The columns of a price version. The INSERT names them, because a later schema may have more columns with defaults.
 */
const priceColumns = Object.keys(registers.prices)

/** The SQLSTATE that `post` raises if the time of an entry is in none of the periods in `windows`. */
export const noWindow = 'TR200'

/**
 * The SQLSTATE that `post` raises if an entry's id is in the index of archives but not in `known_ids`. If the id is in
 * the ledger itself, PostgreSQL raises 23505.
 */
export const postedAlready = 'TR202'

/**
 * Appends entries to the chains of their accounts (ruling C15): debits, credits, and credits that reverse debits. One
 * call posts all its entries or none. It skips entries that are posted already, or that their account cannot take.
 *
 * Parameters:
 * - `entries`: rows with the columns `names`, and with `content`, `later` and `form`. `content` and `later` are parts
 *   of the digest's input, and `form` is the number of the input's layout (accounts/chain.ts).
 * - `account_ids`: the accounts of the entries, without duplicates. The function locks them in the order of their ids,
 *   so two calls never wait for each other.
 * - `known_ids`: ids of entries that the caller knows to be posted. If any other entry is posted already, nothing is
 *   posted, and `postedAlready` or 23505 is raised. Thus all entries are inserted in one statement, without a search
 *   for ids. ON CONFLICT would cost more: for each statement PostgreSQL then looks up the parents of each index of the
 *   month.
 * - `price_rows`: the prices of the price versions that the entries name.
 * - `windows`: days, weeks and months of the reporting zone around now, as `{per, from_ms, until_ms}`. If the time of
 *   an entry is in none of them, a clock is wrong. Then nothing is posted, and `noWindow` is raised with that time as
 *   detail.
 * - `expected_ms`: the time that the database's clock should show; null if unknown. If the clock shows another time,
 *   nothing is posted (ruling Y15).
 * - `list_rows`: the price lists that the entries name, if an entry is of form 3; otherwise null.
 *
 * Results:
 * - `postings`: a letter for each row: `p` posted, `e` its id or reference exists already, `r` rejected. An entry is
 *   rejected if its account does not exist, or if the balance would exceed 64 bits.
 * - `accounts`, `stored`: the accounts and their new balances, in nano-credits.
 * - `begun`: true if this call has begun form 3 of the ledger.
 */
export const post = defineFunction(
  'post',
  `(entries json, account_ids text[], known_ids uuid[], price_rows json, windows json, expected_ms bigint, list_rows json, OUT postings text, OUT accounts text[], OUT stored bigint[], OUT begun boolean)
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  balance_max constant bigint := 9223372036854775807;
  balance_min constant bigint := -9223372036854775808;
  head_ms bigint;
  called_ms bigint;
  entry record;
  at integer;                            -- the position of its account in accounts, stored and the next four, which are the
  firsts bigint[];                       -- balance before this call and the end of the chain
  seqs bigint[];
  times bigint[];
  digests text[];
  letter text;
  change bigint;
  next_ms bigint;
  posted uuid[] := known_ids;            -- then the columns that follow from the place of each row; null for a row that is not posted. With
  new_seqs bigint[] := '{NULL}';         -- an empty array, the first element to be set would become the first one.
  new_balances bigint[] := '{NULL}';
  new_times bigint[] := '{NULL}';
  new_digests text[] := '{NULL}';
  budgeted text[];                       -- accounts with their keys and people that have a budget; then its scopes, periods and amounts
  scopes text[];
  pers text[];
  nth integer;
  begins bigint;
  ends bigint;
  budgets bigint[];
  spend record;
  level integer;
  counted bigint;                        -- the last entry of the account that its own budget counts
  own integer;                           -- the position of the account's own budget in budgeted
  account text;
  kind text;
  lows bigint[];                         -- amounts to warn at (ruling X15)
  wants_own boolean;
  has_own_lows boolean;
  warns boolean;
  has_new_prices boolean;
BEGIN
  -- This lock comes first: so no entry is dated before a head that is made during this call.
  PERFORM pg_advisory_xact_lock_shared(${locks.head});
  -- These facts are read by one statement, since the start of a statement costs more than most of these reads.
  SELECT (SELECT h.moment_ms FROM triwire.head h), triwire.now_ms(),
      EXISTS (SELECT FROM json_to_recordset(price_rows) AS p(version text)
        WHERE NOT EXISTS (SELECT FROM triwire.prices known WHERE known.version = p.version)),
      array_agg(w.below) FILTER (WHERE w.event = 'credit_low' AND w.below > 0),
      coalesce(bool_or(w.event = 'credit_low' AND w.below = 0), false), coalesce(bool_or(w.event = 'key_budget'), false)
    INTO head_ms, called_ms, has_new_prices, lows, wants_own, warns FROM triwire.watched w;
  IF abs(called_ms - expected_ms) > ${apartMaxMs} THEN
    RAISE EXCEPTION 'the clock of the database is in doubt' USING ERRCODE = 'TR201';
  END IF;

  -- Prices are locked before the accounts, and also in the same order by all callers.
  IF has_new_prices THEN
    INSERT INTO triwire.prices (${priceColumns.join(', ')})
      SELECT ${priceColumns.map((column) => `p.${column}`).join(', ')} FROM json_populate_recordset(NULL::triwire.prices, price_rows) p
      ORDER BY p.version
      ON CONFLICT (version) DO NOTHING;
  END IF;
  IF list_rows IS NOT NULL THEN
    ${beginDetails};
    begun := FOUND;
    INSERT INTO triwire.lists (digest, text)
      SELECT l.digest, l.text FROM json_populate_recordset(NULL::triwire.lists, list_rows) l ORDER BY l.digest
      ON CONFLICT (digest) DO NOTHING;
  END IF;

  SELECT array_agg(c.account_id), array_agg(c.balance), array_agg(c.seq), array_agg(c.posted_ms), array_agg(c.digest)
    INTO accounts, stored, seqs, times, digests FROM (
      SELECT b.account_id, b.balance, b.seq, b.posted_ms, b.digest FROM triwire.balances b WHERE b.account_id = ANY (account_ids)
      ORDER BY b.account_id FOR NO KEY UPDATE) c;
  firsts := stored;
  -- A change of a budget locks the account as well.
  SELECT array_agg(b.account_id || ' ' || b.spender), array_agg(b.scope), array_agg(coalesce(b.budget_per, 'ever')), array_agg(b.budget),
      EXISTS (SELECT FROM triwire.accounts a WHERE a.id = ANY (account_ids) AND a.warn IS NOT NULL)
    INTO budgeted, scopes, pers, budgets, has_own_lows FROM (${selectBudgeted('triwire')}) b WHERE b.account_id = ANY (account_ids);

  postings := '';
  FOR entry IN
    SELECT * FROM json_to_recordset(entries) AS e(${typed(judged)}, form text, content text, later text)
  LOOP
    IF entry.account_id IS DISTINCT FROM account THEN
      account := entry.account_id;
      at := array_position(accounts, account);
      own := array_position(budgeted, account || ' ' || account);
      IF own IS NOT NULL THEN SELECT s.seq INTO counted FROM triwire.spends s WHERE s.scope = account; END IF;
    END IF;

    change := CASE entry.kind WHEN 'credit' THEN entry.amount ELSE -entry.amount END;
    letter := 'p';
    IF at IS NULL OR (change > 0 AND stored[at] > balance_max - change) OR (change < 0 AND stored[at] < balance_min - change) THEN
      letter := 'r';
    ELSIF entry.id = ANY (posted) THEN
      letter := 'e';
    ELSIF entry.kind = 'credit' THEN
      INSERT INTO triwire.credits (reference, entry_id, account_id, amount)
        VALUES (entry.reference, entry.id, account, entry.amount) ON CONFLICT (reference) DO NOTHING;
      IF NOT FOUND THEN letter := 'e'; END IF;
    END IF;
    postings := postings || letter;
    CONTINUE WHEN letter <> 'p';

    next_ms := greatest(called_ms, times[at], head_ms + 1);
    stored[at] := stored[at] + change;
    seqs[at] := seqs[at] + 1;
    -- A correction allows the next entry an earlier time (corrections.ts).
    times[at] := CASE WHEN entry.kind = 'credit' AND entry.effective IS NOT NULL THEN entry.created_ms ELSE next_ms END;
    -- Must equal digestEntry in src/accounts/chain.ts. The length of a number is that of its digits, one octet each.
    digests[at] := entry.form || ':' || encode(sha256(convert_to(concat(
      '1:', entry.form, coalesce(octet_length(digests[at]) || ':' || digests[at], '-'), octet_length(account), ':', account,
      length(seqs[at]::text), ':', seqs[at], length(entry.kind), ':', entry.kind,
      length(entry.amount::text), ':', entry.amount, length(stored[at]::text), ':', stored[at],
      entry.content, length(next_ms::text), ':', next_ms, entry.later), 'UTF8')), 'base64');
    posted := array_append(posted, entry.id);
    nth := length(postings);
    new_seqs[nth] := seqs[at];
    new_balances[nth] := stored[at];
    new_times[nth] := next_ms;
    new_digests[nth] := digests[at];

    CONTINUE WHEN budgeted IS NULL;

    -- As spendMore and clampNanos in src/accounts/budget.ts. The lock of the account covers these rows: no other account
    -- has its keys.
    FOREACH nth IN ARRAY array_remove(ARRAY[array_position(budgeted, account || ' ' || entry.key_id),
      array_position(budgeted, account || ' ' || entry.person), CASE WHEN entry.usage_source IS NOT NULL THEN own END], NULL)
    LOOP
      UPDATE triwire.spends s SET spent = greatest(-${nanosMax}, least(${nanosMax},
          s.spent::numeric - CASE WHEN next_ms < s.from_ms THEN 0 ELSE change END)),
          seq = CASE WHEN nth = own THEN seqs[at] END
        WHERE s.scope = scopes[nth] AND next_ms < s.until_ms RETURNING s.* INTO spend;
      IF NOT FOUND THEN
        SELECT w.from_ms, w.until_ms INTO begins, ends FROM json_to_recordset(windows) AS w(per text, from_ms bigint, until_ms bigint)
          WHERE w.per = pers[nth] AND next_ms >= w.from_ms AND next_ms < w.until_ms;
        IF NOT FOUND THEN RAISE EXCEPTION 'no window' USING ERRCODE = '${noWindow}', DETAIL = next_ms::text; END IF;
        INSERT INTO triwire.spends AS s (scope, from_ms, until_ms, spent, seq)
          VALUES (scopes[nth], begins, ends, -change, CASE WHEN nth = own THEN seqs[at] END)
          ON CONFLICT (scope) DO UPDATE SET from_ms = greatest(excluded.from_ms, s.until_ms),
            until_ms = excluded.until_ms, spent = excluded.spent, warned = 0, seq = excluded.seq
          RETURNING s.* INTO spend;
      END IF;
      IF nth = own THEN
        -- Replicas of older versions post without adding to the budget of the account.
        IF counted < seqs[at] - 1 THEN
          UPDATE triwire.spends s SET spent = greatest(-${nanosMax}, least(${nanosMax}, s.spent::numeric + coalesce((
              SELECT sum(CASE e.kind WHEN 'debit' THEN e.amount ELSE -e.amount END) FROM triwire.entries e
              WHERE e.account_id = account AND e.seq > counted AND e.seq < seqs[at] AND ${isSpending}
                AND ${countedMs('triwire')} >= spend.from_ms AND ${countedMs('triwire')} < spend.until_ms), 0)))
            WHERE s.scope = account RETURNING s.* INTO spend;
        END IF;
        counted := seqs[at];
      END IF;
      -- The same as warnOfBudget in src/accounts/warnings.ts.
      level := CASE WHEN spend.spent >= budgets[nth] THEN 100
        WHEN spend.spent >= budgets[nth] - budgets[nth] / 5 THEN 80 ELSE 0 END;
      kind := CASE WHEN nth = own THEN 'account' WHEN starts_with(scopes[nth], 'per_') THEN 'person' ELSE 'key' END;
      IF warns AND level > spend.warned THEN
        UPDATE triwire.spends s SET warned = level WHERE s.scope = scopes[nth];
        INSERT INTO triwire.outbox (id, event, data, at_ms, next_ms)
          SELECT concat_ws(':', l.event, scopes[nth], spend.from_ms, budgets[nth]), l.event, json_build_object(
              kind, scopes[nth], 'budget_nanos', budgets[nth]::text, 'per', nullif(pers[nth], 'ever'),
              'spent_nanos', spend.spent::text, 'until_ms', spend.until_ms)::text, called_ms, called_ms
          FROM (VALUES (80, kind || '_budget_80'), (100, kind || '_budget_spent')) AS l(at, event)
          WHERE l.at > spend.warned AND l.at <= level ON CONFLICT (id) DO NOTHING;
      END IF;
    END LOOP;
  END LOOP;

  INSERT INTO triwire.entries (${names.join(', ')}, seq, balance_after, posted_ms, digest)
    SELECT * FROM ROWS FROM (json_to_recordset(entries) AS (${typed(names)}), unnest(new_seqs, new_balances, new_times, new_digests))
      AS e(${names.join(', ')}, seq, balance_after, posted_ms, digest) WHERE e.seq IS NOT NULL;
  GET DIAGNOSTICS nth = ROW_COUNT;
  IF nth < cardinality(posted) - cardinality(known_ids) THEN
    RAISE EXCEPTION 'entries are posted already' USING ERRCODE = '${postedAlready}';
  END IF;
  UPDATE triwire.balances b SET balance = n.balance, seq = n.seq, posted_ms = n.posted_ms, digest = n.digest
    FROM unnest(accounts, stored, seqs, times, digests) AS n(account_id, balance, seq, posted_ms, digest)
    WHERE b.account_id = n.account_id AND b.seq <> n.seq;
  -- The same as warnOfCredit in src/accounts/warnings.ts.
  IF lows IS NOT NULL OR has_own_lows THEN
    INSERT INTO triwire.outbox (id, event, data, at_ms, next_ms)
      SELECT concat_ws(':', 'credit_low', n.account_id, l.below, n.seq), 'credit_low', json_strip_nulls(json_build_object(
          'account', n.account_id, 'balance_nanos', n.balance::text, 'below_nanos', l.below::text,
          'own', CASE WHEN a.warn IS NOT NULL THEN 1 END))::text, called_ms, called_ms
      FROM unnest(accounts, firsts, stored, seqs) AS n(account_id, before, balance, seq)
        JOIN triwire.accounts a ON a.id = n.account_id
        CROSS JOIN unnest(CASE WHEN a.warn IS NULL THEN lows WHEN wants_own THEN string_to_array(a.warn, ',')::bigint[] END) AS l(below)
      WHERE n.before >= l.below AND n.balance < l.below ON CONFLICT (id) DO NOTHING;
  END IF;
END $$`,
)
