import { entryKinds } from '../../accounts/chain.ts'
import { apartMaxMs } from '../../accounts/clock.ts'
import { nanosMax } from '../../accounts/credit.ts'
import { givenColumns } from '../../accounts/entry-row.ts'
import { registers } from '../../accounts/registers.ts'
import { isSpending, selectBudgeted } from '../sql/budgeted.ts'
import { countedMs } from '../sql/entries.ts'
import { defineFunction, locks } from './migrate.ts'
import { beginDetails } from './schema.ts'

/** The columns of an entry that the caller gives. The function computes the others from the end of the chain. */
const names = ['id', ...givenColumns]
const typed = ['id uuid', ...givenColumns.map((name) => `${name} ${entryKinds[name] === 'text' ? 'text' : 'bigint'}`)]

/**
 * The columns of a price version. The INSERT names them, because a later schema may have more columns with defaults.
 */
const priceColumns = Object.keys(registers.prices)

/** The SQLSTATE that `post` raises for an entry whose time is in none of the given windows. */
export const noWindow = 'TR200'

/**
 * Appends entries to the chains of their accounts (ruling C15): debits, credits and returns. All are posted or none is.
 * Entries that are posted already, or that their account cannot take, are skipped.
 *
 * Parameters:
 * - `entries`: rows with the columns above and
 * - `content`, `later`, `form`: the parts of the digest's input, and the number of its layout (accounts/chain.ts),
 * - `ends_account`: true for the last one of its account. Entries of an account are together. All callers have the
 *     accounts in the same order, so two calls never wait for each other.
 * - `price_rows`: the prices of their price versions.
 * - `windows`: days, weeks and months of the reporting zone around now, as `{per, from_ms, until_ms}`. An entry in none
 *   of them means that a clock is wrong. Then nothing is posted, and `noWindow` is raised with the time as detail.
 * - `expected_ms`: the time that the database's clock should show; null if unknown. If it shows another one, nothing is
 *   posted (ruling Y15).
 * - `list_rows`: the price lists that the entries name, if one of them is of form 3; otherwise null.
 *
 * Results:
 * - `postings`: a letter for each row: `p` posted, `e` its id or reference exists already, `r` rejected. An entry is
 *   rejected if its account does not exist, or if the balance would exceed 64 bits.
 * - `accounts`, `stored`: the new balances, in nano-credits.
 * - `begun`: true if this call has begun form 3 of the ledger.
 */
export const post = defineFunction(
  'post',
  `(entries json, price_rows json, windows json, expected_ms bigint, list_rows json, OUT postings text, OUT accounts text[], OUT stored bigint[], OUT begun boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  balance_max constant bigint := 9223372036854775807;
  balance_min constant bigint := -9223372036854775808;
  head_ms bigint;
  called_ms bigint;
  entry record;
  account text;                          -- the next five are about the end of this account's chain
  is_account boolean;
  end_balance bigint;
  end_seq bigint;
  end_ms bigint;
  end_digest text;
  change bigint;
  is_free boolean;
  next_ms bigint;
  next_digest text;
  budgeted text[];                       -- keys and people of the account with a budget; then its scopes, periods and amounts
  scopes text[];
  pers text[];
  nth integer;
  begins bigint;
  ends bigint;
  budgets bigint[];
  spend record;
  level integer;
  counted bigint;                        -- the last entry of the account that its own budget counts
  own integer;                           -- the position of the account's own budget in budgeted, under the account's id
  kind text;
  lows bigint[];                         -- amounts to warn at (ruling X15), and the balance before this call
  own_lows bigint[];
  wants_own boolean;
  warns boolean;
  first_balance bigint;
BEGIN
  -- This lock comes first: so no entry is dated before a head that is made during this call.
  PERFORM pg_advisory_xact_lock_shared(${locks.head});
  SELECT h.moment_ms INTO head_ms FROM triwire.head h;
  called_ms := triwire.now_ms();
  IF abs(called_ms - expected_ms) > ${apartMaxMs} THEN
    RAISE EXCEPTION 'the clock of the database is in doubt' USING ERRCODE = 'TR201';
  END IF;
  SELECT array_agg(w.below) FILTER (WHERE w.event = 'credit_low' AND w.below > 0),
      coalesce(bool_or(w.event = 'credit_low' AND w.below = 0), false), coalesce(bool_or(w.event = 'key_budget'), false)
    INTO lows, wants_own, warns FROM triwire.watched w;

  -- Prices are locked before the accounts, and also in the same order by all callers.
  INSERT INTO triwire.prices (${priceColumns.join(', ')})
    SELECT ${priceColumns.map((column) => `p.${column}`).join(', ')} FROM json_populate_recordset(NULL::triwire.prices, price_rows) p
    WHERE NOT EXISTS (SELECT FROM triwire.prices known WHERE known.version = p.version)
    ORDER BY p.version
    ON CONFLICT (version) DO NOTHING;
  IF list_rows IS NOT NULL THEN
    ${beginDetails};
    begun := FOUND;
    INSERT INTO triwire.lists (digest, text)
      SELECT l.digest, l.text FROM json_populate_recordset(NULL::triwire.lists, list_rows) l ORDER BY l.digest
      ON CONFLICT (digest) DO NOTHING;
  END IF;

  postings := '';
  FOR entry IN
    SELECT * FROM json_to_recordset(entries)
      AS e(${typed.join(', ')}, form text, content text, later text, ends_account boolean)
  LOOP
    IF entry.account_id IS DISTINCT FROM account THEN
      account := entry.account_id;
      SELECT b.balance, b.seq, b.posted_ms, b.digest INTO end_balance, end_seq, end_ms, end_digest
        FROM triwire.balances b WHERE b.account_id = account FOR NO KEY UPDATE;
      is_account := FOUND;
      first_balance := end_balance;
      -- A change of a budget locks the account as well.
      SELECT array_agg(b.spender), array_agg(b.scope), array_agg(coalesce(b.budget_per, 'ever')), array_agg(b.budget)
        INTO budgeted, scopes, pers, budgets FROM (${selectBudgeted('triwire')}) b WHERE b.account_id = account;
      own := array_position(budgeted, account);
      IF own IS NOT NULL THEN SELECT s.seq INTO counted FROM triwire.spends s WHERE s.scope = account; END IF;
      SELECT string_to_array(a.warn, ',')::bigint[] INTO own_lows FROM triwire.accounts a WHERE a.id = account AND a.warn IS NOT NULL;
    END IF;

    change := CASE entry.kind WHEN 'credit' THEN entry.amount ELSE -entry.amount END;
    IF NOT is_account OR (change > 0 AND end_balance > balance_max - change)
      OR (change < 0 AND end_balance < balance_min - change)
    THEN
      postings := postings || 'r';
    ELSE
      next_ms := greatest(called_ms, end_ms, head_ms + 1);
      -- Must equal digestEntry in src/accounts/chain.ts. The length of a number is that of its digits, one octet each.
      next_digest := entry.form || ':' || encode(sha256(convert_to(
        '1:' || entry.form
        || coalesce(octet_length(end_digest) || ':' || end_digest, '-')
        || octet_length(account) || ':' || account
        || length((end_seq + 1)::text) || ':' || (end_seq + 1)
        || length(entry.kind) || ':' || entry.kind
        || length(entry.amount::text) || ':' || entry.amount
        || length((end_balance + change)::text) || ':' || (end_balance + change)
        || entry.content
        || length(next_ms::text) || ':' || next_ms
        || entry.later, 'UTF8')), 'base64');

      is_free := true;
      IF entry.kind = 'credit' THEN
        INSERT INTO triwire.credits (reference, entry_id, account_id, amount)
          VALUES (entry.reference, entry.id, account, entry.amount) ON CONFLICT (reference) DO NOTHING;
        is_free := FOUND;
      END IF;
      IF is_free THEN
        INSERT INTO triwire.entries (${names.join(', ')}, seq, balance_after, posted_ms, digest)
          VALUES (${names.map((name) => `entry.${name}`).join(', ')}, end_seq + 1, end_balance + change, next_ms, next_digest)
          ON CONFLICT (id) DO NOTHING;
        is_free := FOUND;
      END IF;

      IF is_free THEN
        postings := postings || 'p';
        end_balance := end_balance + change;
        end_seq := end_seq + 1;
        -- A correction allows the next entry an earlier time (corrections.ts).
        end_ms := CASE WHEN entry.kind = 'credit' AND entry.effective IS NOT NULL THEN entry.created_ms ELSE next_ms END;
        end_digest := next_digest;
        -- As spendMore and clampNanos in src/accounts/budget.ts. The lock of the account covers these rows: no other account
        -- has its keys.
        FOREACH nth IN ARRAY array_remove(ARRAY[array_position(budgeted, entry.key_id),
          array_position(budgeted, entry.person), CASE WHEN entry.usage_source IS NOT NULL THEN own END], NULL)
        LOOP
          UPDATE triwire.spends s SET spent = greatest(-${nanosMax}, least(${nanosMax},
              s.spent::numeric - CASE WHEN next_ms < s.from_ms THEN 0 ELSE change END)),
              seq = CASE WHEN nth = own THEN end_seq END
            WHERE s.scope = scopes[nth] AND next_ms < s.until_ms RETURNING s.* INTO spend;
          IF NOT FOUND THEN
            SELECT w.from_ms, w.until_ms INTO begins, ends FROM json_to_recordset(windows) AS w(per text, from_ms bigint, until_ms bigint)
              WHERE w.per = pers[nth] AND next_ms >= w.from_ms AND next_ms < w.until_ms;
            IF NOT FOUND THEN RAISE EXCEPTION 'no window' USING ERRCODE = '${noWindow}', DETAIL = next_ms::text; END IF;
            INSERT INTO triwire.spends AS s (scope, from_ms, until_ms, spent, seq)
              VALUES (scopes[nth], begins, ends, -change, CASE WHEN nth = own THEN end_seq END)
              ON CONFLICT (scope) DO UPDATE SET from_ms = greatest(excluded.from_ms, s.until_ms),
                until_ms = excluded.until_ms, spent = excluded.spent, warned = 0, seq = excluded.seq
              RETURNING s.* INTO spend;
          END IF;
          IF nth = own THEN
            -- Replicas of older versions post without adding to the budget of the account.
            IF counted < end_seq - 1 THEN
              UPDATE triwire.spends s SET spent = greatest(-${nanosMax}, least(${nanosMax}, s.spent::numeric + coalesce((
                  SELECT sum(CASE e.kind WHEN 'debit' THEN e.amount ELSE -e.amount END) FROM triwire.entries e
                  WHERE e.account_id = account AND e.seq > counted AND e.seq < end_seq AND ${isSpending}
                    AND ${countedMs('triwire')} >= spend.from_ms AND ${countedMs('triwire')} < spend.until_ms), 0)))
                WHERE s.scope = account RETURNING s.* INTO spend;
            END IF;
            counted := end_seq;
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
                  'spent_nanos', spend.spent::text, 'until_ms', spend.until_ms)::text, next_ms, called_ms
              FROM (VALUES (80, kind || '_budget_80'), (100, kind || '_budget_spent')) AS l(at, event)
              WHERE l.at > spend.warned AND l.at <= level ON CONFLICT (id) DO NOTHING;
          END IF;
        END LOOP;
      ELSE
        postings := postings || 'e';
      END IF;
    END IF;

    IF entry.ends_account AND is_account THEN
      UPDATE triwire.balances b SET balance = end_balance, seq = end_seq, posted_ms = end_ms, digest = end_digest
        WHERE b.account_id = account AND b.seq <> end_seq;
      -- The same as warnOfCredit in src/accounts/warnings.ts.
      IF (lows IS NOT NULL OR own_lows IS NOT NULL) AND end_balance < first_balance THEN
        INSERT INTO triwire.outbox (id, event, data, at_ms, next_ms)
          SELECT concat_ws(':', 'credit_low', account, l.below, end_seq), 'credit_low', json_strip_nulls(json_build_object(
              'account', account, 'balance_nanos', end_balance::text, 'below_nanos', l.below::text,
              'own', CASE WHEN own_lows IS NOT NULL THEN 1 END))::text, end_ms, called_ms
          FROM unnest(CASE WHEN own_lows IS NULL THEN lows WHEN wants_own THEN own_lows END) AS l(below) WHERE first_balance >= l.below AND end_balance < l.below ON CONFLICT (id) DO NOTHING;
      END IF;
      accounts := accounts || account;
      stored := stored || end_balance;
    END IF;
  END LOOP;
END $$`,
)
