import { defineFunction } from './functions.ts'
import { locks } from './migrate.ts'

/** Columns of an entry that come as they are, with their types. All others follow from its place in the chain. */
export const givenColumns = {
  id: 'uuid',
  account_id: 'text',
  kind: 'text',
  amount: 'bigint',
  reference: 'text',
  request_id: 'text',
  key_id: 'text',
  client_wire: 'text',
  model: 'text',
  model_wire: 'text',
  upstream: 'text',
  upstream_account: 'text',
  input_tokens: 'bigint',
  cache_read_tokens: 'bigint',
  cache_write_tokens: 'bigint',
  cache_write_1h_tokens: 'bigint',
  output_tokens: 'bigint',
  reasoning_tokens: 'bigint',
  priced_calls: 'bigint',
  calls: 'text',
  usage_source: 'text',
  price_version: 'text',
  outcome: 'text',
  created_ms: 'bigint',
} as const

const names = Object.keys(givenColumns)
const typed = Object.entries(givenColumns).map(([name, type]) => `${name} ${type}`)

/**
 * Puts entries at the ends of the chains of their accounts (ruling C15): debits, credits and returns. All or none, but for
 * those that are booked already or that their account cannot take.
 *
 * - `entries`: rows with the columns above and
 *   - `content`: `formatContent` of the row,
 *   - `ends_account`: it is the last one of its account. All of an account stand together, and accounts in one order
 *     wherever this is called, so that two calls never wait for each other in a ring,
 *   - `budget_period_ms`: beginning of the period in which its key has spent it; null where the key has no budget.
 * - `price_rows`: what their price versions stand for.
 * - `postings`: a letter for each row: `p` posted, `e` its id or its reference is there already, `r` rejected: no such
 *   account, or its balance would be no integer of 64 bits.
 * - `accounts`, `stored`: the balances behind it, in nano-credits.
 */
export const post = defineFunction(
  'post',
  `(entries json, price_rows json, OUT postings text, OUT accounts text[], OUT stored bigint[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  balance_max constant bigint := 9223372036854775807;
  balance_min constant bigint := -9223372036854775808;
  head_ms bigint;
  called_ms bigint;
  entry record;
  account text;                          -- whose end of the chain the next five are about
  is_account boolean;
  end_balance bigint;
  end_seq bigint;
  end_ms bigint;
  end_digest text;
  change bigint;
  is_free boolean;
  next_ms bigint;
  next_digest text;
BEGIN
  -- First of all: no entry is dated before a head that was taken while it was under way.
  PERFORM pg_advisory_xact_lock_shared(${locks.head});
  SELECT h.moment_ms INTO head_ms FROM triwire.head h;
  called_ms := triwire.now_ms();

  -- Ahead of all accounts, and in one order like them.
  INSERT INTO triwire.prices
    SELECT p.* FROM json_populate_recordset(NULL::triwire.prices, price_rows) p
    WHERE NOT EXISTS (SELECT FROM triwire.prices known WHERE known.version = p.version)
    ORDER BY p.version
    ON CONFLICT (version) DO NOTHING;

  postings := '';
  FOR entry IN
    SELECT * FROM json_to_recordset(entries)
      AS e(${typed.join(', ')}, content text, ends_account boolean, budget_period_ms bigint)
  LOOP
    IF entry.account_id IS DISTINCT FROM account THEN
      account := entry.account_id;
      SELECT b.balance, b.seq, b.posted_ms, b.digest INTO end_balance, end_seq, end_ms, end_digest
        FROM triwire.balances b WHERE b.account_id = account FOR NO KEY UPDATE;
      is_account := FOUND;
    END IF;

    change := CASE entry.kind WHEN 'credit' THEN entry.amount ELSE -entry.amount END;
    IF NOT is_account OR (change > 0 AND end_balance > balance_max - change)
      OR (change < 0 AND end_balance < balance_min - change)
    THEN
      postings := postings || 'r';
    ELSE
      next_ms := greatest(called_ms, end_ms, head_ms + 1);
      -- See digestEntry in src/accounts/chain.ts, which must say the same. Of digits there are as many as octets.
      next_digest := CASE WHEN entry.calls IS NULL THEN '1' ELSE '2' END;
      next_digest := next_digest || ':' || encode(sha256(convert_to(
        '1:' || next_digest
        || coalesce(octet_length(end_digest) || ':' || end_digest, '-')
        || octet_length(account) || ':' || account
        || length((end_seq + 1)::text) || ':' || (end_seq + 1)
        || length(entry.kind) || ':' || entry.kind
        || length(entry.amount::text) || ':' || entry.amount
        || length((end_balance + change)::text) || ':' || (end_balance + change)
        || entry.content
        || length(next_ms::text) || ':' || next_ms
        || coalesce(octet_length(entry.calls) || ':' || entry.calls, ''), 'UTF8')), 'base64');

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
        end_ms := next_ms;
        end_digest := next_digest;
        -- No other account has this key, so who holds the account holds its key's row too.
        IF entry.budget_period_ms IS NOT NULL THEN
          INSERT INTO triwire.spends AS s (key_id, period_ms, spent)
            VALUES (entry.key_id, entry.budget_period_ms, -change)
            ON CONFLICT (key_id, period_ms) DO UPDATE SET spent = s.spent + excluded.spent;
        END IF;
      ELSE
        postings := postings || 'e';
      END IF;
    END IF;

    IF entry.ends_account AND is_account THEN
      UPDATE triwire.balances b SET balance = end_balance, seq = end_seq, posted_ms = end_ms, digest = end_digest
        WHERE b.account_id = account AND b.seq <> end_seq;
      accounts := accounts || account;
      stored := stored || end_balance;
    END IF;
  END LOOP;
END $$`,
)
