import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test, { before, type TestContext } from 'node:test'
import { parseHead } from '../../src/accounts/chain.ts'
import { formatCredits } from '../../src/accounts/credit.ts'
import type { LogLine } from '../../src/accounts/entries.ts'
import { readLogLine } from '../../src/cli/access-log.ts'
import { type Engine, onEachStore, openFile, type TestStore } from './engines.ts'
import { createFirstRelease, type OldEntry } from './first-release.ts'
import { costNanos, createDebitRow, createPath, usage, verifyOptions } from './fixtures.ts'
import { type Forger, follow, rechain, redigest } from './forge.ts'

/*
 * Every forgery of the trials that led to ruling C15, and what finds it: `verify` alone, the access log, a head that was
 * taken before it. Each is played on a store of today and on one whose entries the first release made. docs/ledger.md has
 * the table.
 */

type Finder = 'plain' | 'log' | 'against'
const finders: Finder[] = ['plain', 'log', 'against']
const labels: Record<Finder, string> = { plain: 'plain', log: '`--log`', against: '`--against`' }

type Forgery = {
  name: string
  /** Where it can be played; everywhere where it does not say. */
  on?: Engine['name']
  play: Play
  finds: readonly Finder[]
  /** Where it is another in a store whose entries the first release made. */
  findsOld?: readonly Finder[]
}

type Play = (store: TestStore, ids: Ids) => Promise<void>

/** Past the triggers. */
function sql(text: (ids: Ids, engine: Forger['engine']) => string, then?: (forger: Forger) => Promise<void>): Play {
  return (store, ids) =>
    store.forge(async (forger) => {
      await forger.run(text(ids, forger.engine))
      await then?.(forger)
    })
}

/** Through a connection like any other. */
function raw(...texts: string[]): Play {
  return async (store) => {
    for (const text of texts) await store.exec(text)
  }
}

const cut = () => "UPDATE entries SET amount = amount - 300000, output_tokens = 0 WHERE request_id = 'req_3'"
const waive = () => "UPDATE entries SET amount = 0, usage_source = 'waived' WHERE request_id = 'req_3'"
const raise = ({ a }: Ids) => `UPDATE entries SET amount = amount * 2 WHERE reference = 'create:${a}'`
const cutTail = ({ a }: Ids) =>
  `DELETE FROM entries WHERE account_id = '${a}' AND request_id IN ('req_3', 'req_5', 'req_7');
   UPDATE accounts SET (seq, balance) = (SELECT seq, balance_after FROM entries WHERE request_id = 'req_1') WHERE id = '${a}'`
const insertCredit = ({ a }: Ids) =>
  `INSERT INTO entries (account_id, seq, kind, amount, balance_after, reference, created_ms, posted_ms, digest)
     SELECT account_id, seq + 1, 'credit', 5000000, balance_after + 5000000, 'invoice 1', created_ms, posted_ms, digest
     FROM entries WHERE account_id = '${a}' ORDER BY seq DESC LIMIT 1;
   UPDATE accounts SET seq = seq + 1, balance = balance + 5000000 WHERE id = '${a}'`
const insertOldCredit = ({ a }: Ids) =>
  `UPDATE entries SET seq = seq + 1000 WHERE account_id = '${a}' AND seq > 1;
   INSERT INTO entries (account_id, seq, kind, amount, balance_after, reference, created_ms, posted_ms, digest)
     SELECT account_id, 2, 'credit', 5000000, 0, 'invoice 1', created_ms, posted_ms, digest
     FROM entries WHERE reference = 'create:${a}'`
/** In place: both have the same number in their accounts. */
const exchange = ({ a, b }: Ids) =>
  `UPDATE entries SET seq = -1 WHERE request_id = 'req_3'; UPDATE entries SET seq = -2 WHERE request_id = 'req_4';
   UPDATE entries SET account_id = CASE account_id WHEN '${a}' THEN '${b}' ELSE '${a}' END WHERE seq < 0;
   UPDATE entries SET seq = 3 WHERE seq < 0`
const exchangeWithKeys = (ids: Ids) =>
  `${exchange(ids)}; UPDATE entries SET key_id = CASE key_id WHEN '${ids.keyA}' THEN '${ids.keyB}' WHEN '${ids.keyB}' THEN '${ids.keyA}' END
     WHERE request_id IN ('req_3', 'req_4')`
const giveBack = ({ a }: Ids) =>
  `INSERT INTO entries (account_id, seq, kind, amount, balance_after, reference, usage_source, created_ms, posted_ms, digest)
     SELECT account_id, seq + 1, 'credit', 630000, 0, 'return:req_3', 'waived', created_ms, posted_ms, digest
     FROM entries WHERE account_id = '${a}' ORDER BY seq DESC LIMIT 1`

const forgeries: Forgery[] = [
  {
    name: 'an amount changed',
    play: sql(() => "UPDATE entries SET amount = 1 WHERE request_id = 'req_3'"),
    finds: ['plain', 'log'],
  },
  {
    name: 'a balance in an entry changed',
    play: sql(() => "UPDATE entries SET balance_after = 0 WHERE request_id = 'req_3'"),
    finds: ['plain'],
  },
  {
    name: "an account's balance changed",
    play: sql(({ a }) => `UPDATE accounts SET balance = balance + 1 WHERE id = '${a}'`),
    finds: ['plain'],
  },
  {
    name: 'a middle entry deleted',
    play: sql(() => "DELETE FROM entries WHERE request_id = 'req_3'"),
    finds: ['plain', 'log'],
  },
  {
    name: 'the last entry deleted, which no head covers yet',
    play: sql(() => "DELETE FROM entries WHERE request_id = 'req_7'"),
    finds: ['plain', 'log'],
  },
  {
    name: 'two entries swapped',
    play: sql(
      ({ a }) => `UPDATE entries SET seq = -seq WHERE account_id = '${a}' AND seq IN (2, 3);
        UPDATE entries SET seq = 5 + seq WHERE seq < 0`,
    ),
    finds: ['plain'],
  },
  {
    name: 'the numbers of the last entries set so high that their sum is no integer',
    play: sql((_, engine) => `UPDATE ${engine === 'postgres' ? 'balances' : 'accounts'} SET seq = 9223372036854775807`),
    finds: ['plain'],
  },
  {
    name: 'an account without an id that has credit',
    on: 'SQLite',
    play: raw(
      "INSERT INTO accounts (id, name, state, balance, seq, revision, created_ms) VALUES ('', 'x', 'active', 5, 0, 0, 0)",
    ),
    finds: ['plain'],
  },
  { name: 'prices changed', play: sql(() => 'UPDATE prices SET output = 1'), finds: ['plain'] },
  {
    name: 'an account deleted, but not its entries',
    play: sql(({ b }) => `DELETE FROM accounts WHERE id = '${b}'`),
    finds: ['plain'],
    // Its lines name the account by its name only, and that is gone.
    findsOld: ['plain', 'log'],
  },
  {
    name: "an account's last three entries deleted, and its number of entries and balance set back",
    play: sql(cutTail, follow),
    finds: ['log', 'against'],
  },
  {
    name: 'tokens and amount of a debit lowered, balances adapted',
    play: sql(cut, rechain),
    finds: ['plain', 'log'],
  },
  {
    name: 'tokens and amount of a debit lowered, digests recomputed',
    play: sql(cut, redigest),
    finds: ['log', 'against'],
  },
  { name: 'a debit marked as `waived`, balances adapted', play: sql(waive, rechain), finds: ['plain', 'log'] },
  { name: 'a debit marked as `waived`, digests recomputed', play: sql(waive, redigest), finds: ['log', 'against'] },
  { name: 'the first credit raised, balances adapted', play: sql(raise, rechain), finds: ['plain'] },
  { name: 'the first credit raised, digests recomputed', play: sql(raise, redigest), finds: ['against'] },
  { name: 'a forged credit by plain `INSERT`', play: sql(insertCredit), finds: ['plain'] },
  { name: 'a forged credit at the end, digests recomputed', play: sql(insertCredit, redigest), finds: [] },
  {
    name: 'a forged credit between entries that a head covers, digests recomputed',
    play: sql(insertOldCredit, redigest),
    finds: ['against'],
  },
  { name: 'a returned debit that was not refused, digests recomputed', play: sql(giveBack, redigest), finds: ['log'] },
  {
    name: 'debits of two accounts exchanged, balances adapted',
    play: sql(exchange, rechain),
    finds: ['plain', 'log'],
  },
  {
    name: 'debits of two accounts exchanged, digests recomputed',
    play: sql(exchange, redigest),
    finds: ['plain', 'log', 'against'],
    findsOld: ['log', 'against'],
  },
  {
    name: 'debits and keys of two accounts exchanged, digests recomputed',
    play: sql(exchangeWithKeys, redigest),
    finds: ['log', 'against'],
  },
  {
    name: 'a whole account deleted, with its keys and entries',
    play: sql(
      ({ b }, engine) => `DELETE FROM entries WHERE account_id = '${b}'; DELETE FROM keys WHERE account_id = '${b}';
        ${engine === 'postgres' ? `DELETE FROM balances WHERE account_id = '${b}';` : ''}
        DELETE FROM accounts WHERE id = '${b}'`,
      follow,
    ),
    finds: ['log', 'against'],
  },
  {
    name: 'triggers dropped',
    on: 'SQLite',
    play: raw('DROP TRIGGER entries_are_not_changed'),
    finds: ['plain'],
  },
  {
    name: 'a trigger of triwire replaced by one that does nothing',
    on: 'SQLite',
    play: raw(
      'DROP TRIGGER entries_are_not_deleted; CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries BEGIN SELECT 1; END',
    ),
    finds: ['plain'],
  },
  {
    name: 'a key moved to another account, if it was used since the upgrade',
    play: sql(({ b, keyA }) => `UPDATE keys SET account_id = '${b}' WHERE id = '${keyA}'`),
    finds: ['plain'],
  },
  {
    name: 'a debit moved to a key of another account, digests recomputed',
    play: sql(({ keyB }) => `UPDATE entries SET key_id = '${keyB}' WHERE request_id = 'req_3'`, redigest),
    finds: ['plain', 'log', 'against'],
  },
  {
    name: 'key and upstream removed from a debit, digests recomputed',
    play: sql(
      () => "UPDATE entries SET key_id = NULL, upstream = NULL, upstream_account = NULL WHERE request_id = 'req_3'",
      redigest,
    ),
    finds: ['log', 'against'],
    // It never had them.
    findsOld: [],
  },
  {
    name: 'the moment of the last head removed',
    play: sql(() => 'DELETE FROM head'),
    finds: ['plain'],
  },
  {
    name: 'the moment of the last head set far ahead',
    play: sql(() => 'UPDATE head SET moment_ms = 9999999999999'),
    finds: ['plain'],
  },
  {
    name: 'an entry replaced by `INSERT OR REPLACE`, which is ignored',
    on: 'SQLite',
    async play(store) {
      let names: unknown[] = []
      await store.forge(async ({ all }) => {
        names = (await all("SELECT name FROM pragma_table_info('entries')")).map(({ name }) => name)
      })
      const values = names.map((name) => (name === 'amount' ? '0' : name))
      await store.exec(
        `INSERT OR REPLACE INTO entries (${names}) SELECT ${values} FROM entries WHERE request_id = 'req_3'`,
      )
    },
    // Nothing is to be found: the insert is ignored.
    finds: [],
  },
  {
    name: 'triggers dropped',
    on: 'PostgreSQL',
    play: raw('DROP TRIGGER entries_are_not_changed ON entries'),
    finds: ['plain'],
  },
  {
    name: 'a trigger disabled only for the entries of one month',
    on: 'PostgreSQL',
    play: raw('ALTER TABLE entries_default DISABLE TRIGGER entries_are_not_changed'),
    finds: ['plain'],
  },
  {
    name: 'a function that triggers call, replaced by one that allows everything',
    on: 'PostgreSQL',
    play: raw(
      'CREATE OR REPLACE FUNCTION triwire.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$',
    ),
    finds: ['plain'],
  },
  {
    name: 'a rule of the database that changes what is written',
    on: 'PostgreSQL',
    play: raw('CREATE RULE gift AS ON INSERT TO credits DO ALSO UPDATE balances SET balance = balance + 1'),
    finds: ['plain'],
  },
  {
    name: 'a constraint dropped',
    on: 'PostgreSQL',
    play: raw('ALTER TABLE credits DROP CONSTRAINT credits_pkey'),
    finds: ['plain'],
  },
  {
    name: 'a used reference removed, so that a second credit can have it',
    on: 'PostgreSQL',
    play: sql(() => 'DELETE FROM credits'),
    finds: ['plain'],
  },
  {
    name: 'all entries of an account deleted, and its number, balance and digest set back',
    on: 'PostgreSQL',
    play: sql(
      ({ b }) => `DELETE FROM entries WHERE account_id = '${b}';
        UPDATE balances SET seq = 0, balance = 0, digest = NULL WHERE account_id = '${b}'`,
    ),
    finds: ['plain', 'log', 'against'],
  },
  {
    name: 'the stored last digest of an account changed',
    on: 'PostgreSQL',
    play: sql(({ b }) => `UPDATE balances SET digest = '1:' WHERE account_id = '${b}'`),
    finds: ['plain'],
  },
]

/** Ids of what the forgeries name; a store of the first release has its own. */
type Ids = { a: string; b: string; keyA: string; keyB: string }

type Case = { store: TestStore; log: LogLine[]; ids: Ids; head: string }

/** Opens a copy of the store of a case. */
type Prepared = Omit<Case, 'store'> & { open(): Promise<TestStore> }

onEachStore((engine) => {
  let ours: Prepared
  before(async () => {
    ours = await prepareOurs(engine)
  })
  const createOurs = async (): Promise<Case> => ({ ...ours, store: await ours.open() })

  test('C15 nothing is found before a forgery', async () => {
    await checkUntouched(await createOurs())
  })
  for (const { name, on = engine.name, play, finds } of forgeries) {
    if (on !== engine.name) continue
    test(`C15 ${name}: found by ${finds.join(', ')}`, async () => {
      assert.deepEqual(await findersOf(await createOurs(), play), finds)
    })
  }
})

test('C15 nothing is found before a forgery, in a store of the first release', async (t) => {
  await checkUntouched(await createOld(t))
})

for (const { name, on, play, finds, findsOld = finds } of forgeries) {
  if (on === 'PostgreSQL') continue
  test(`C15 ${name}, in a store of the first release: found by ${findsOld.join(', ') || 'nothing'}`, async (t) => {
    assert.deepEqual(await findersOf(await createOld(t), play), findsOld)
  })
}

test('C15 docs/ledger.md has the table of forgeries that this test carries out', () => {
  const page = readFileSync(new URL('../../docs/ledger.md', import.meta.url), 'utf8')
  const others = forgeries.filter(({ on }) => on === 'PostgreSQL')
  const rows = forgeries
    .filter(({ on }) => on !== 'PostgreSQL')
    .map(({ name, finds, findsOld }) => {
      const cells = finders.map((finder) => (finds.includes(finder) ? 'found' : '–'))
      const old = findsOld ? findsOld.map((finder) => labels[finder]).join(', ') || 'nothing' : 'the same'
      return `| ${name} | ${cells.join(' | ')} | ${old} |`
    })
  const heading = `| Forgery | ${finders.map((finder) => labels[finder]).join(' | ')} | Result for entries of the first release |`
  const table = [heading, '|---|---|---|---|---|', ...rows].join('\n')
  assert.ok(page.includes(table), `docs/ledger.md should have:\n${table}`)
  const more = others.map(
    ({ name, finds }) =>
      `| ${name} | ${finders.map((finder) => (finds.includes(finder) ? 'found' : '–')).join(' | ')} |`,
  )
  const second = [
    `| Forgery in PostgreSQL | ${finders.map((finder) => labels[finder]).join(' | ')} |`,
    '|---|---|---|---|',
    ...more,
  ].join('\n')
  assert.ok(page.includes(second), `docs/ledger.md should have:\n${second}`)
})

/** Each case begins with the same store, so one check for all of them is enough. */
async function checkUntouched({ store, log, head }: Case): Promise<void> {
  assert.deepEqual(await store.verify({ ...verifyOptions, log, against: parseHead(head) }), [])
}

/** What is found by each way of looking that plain reading does not find as well. */
async function findersOf({ store, log, ids, head }: Case, play: Play): Promise<Finder[]> {
  const against = parseHead(head)
  await play(store, ids)
  const plain = await store.verify(verifyOptions)
  const finds: Record<Finder, boolean> = {
    plain: plain.length > 0,
    log: (await store.verify({ ...verifyOptions, log })).length > plain.length,
    against: (await store.verify({ ...verifyOptions, against })).length > plain.length,
  }
  return finders.filter((finder) => finds[finder])
}

/** Two accounts, three bills each, a head, and one bill each after it. */
async function prepareOurs(engine: Engine): Promise<Prepared> {
  let made: Omit<Case, 'store'> | undefined
  const open = await engine.prepare(async (store) => {
    const { id: a } = await store.createAccount('one', 9_000_000n)
    const { id: b } = await store.createAccount('two', 9_000_000n)
    const ids = { a, b, keyA: (await store.createKey(a)).id, keyB: (await store.createKey(b)).id }
    const lines: string[] = []
    for (const bill of earlier) lines.push(await post(store, ids, bill))
    const { head } = await store.audit(verifyOptions)
    for (const bill of later) lines.push(await post(store, ids, bill))
    made = { ids, log: lines.map((line) => readLogLine(line)!), head: head! }
  })
  return { ...made!, open }
}

/** The same, but the first release made it up to the head. */
async function createOld(t: TestContext): Promise<Case> {
  const path = createPath(t)
  const ids = { a: 'acct_a', b: 'acct_b', keyA: 'key_acct_a', keyB: 'key_acct_b' }
  const entries: OldEntry[] = [
    { accountId: ids.a, creditNanos: 9_000_000n, reference: 'create:acct_a' },
    { accountId: ids.b, creditNanos: 9_000_000n, reference: 'create:acct_b' },
    ...earlier.map(({ whose, requestId }) => ({ accountId: ids[whose], requestId })),
  ]
  createFirstRelease(path, { acct_a: 'one', acct_b: 'two' }, entries)
  const store = openFile(path)
  const { head } = await store.audit(verifyOptions)
  const lines = earlier.map(oldLine)
  for (const bill of later) lines.push(await post(store, ids, bill))
  return { store, ids, log: lines.map((line) => readLogLine(line)!), head: head! }
}

type Bill = { whose: 'a' | 'b'; requestId: string }

const earlier: Bill[] = ['a', 'b', 'a', 'b', 'a', 'b'].map((whose, i) => ({
  whose: whose as 'a',
  requestId: `req_${i + 1}`,
}))
const later: Bill[] = [
  { whose: 'a', requestId: 'req_7' },
  { whose: 'b', requestId: 'req_8' },
]

/** Posts it and says what the log of today says of it. */
async function post(store: TestStore, ids: Ids, { whose, requestId }: Bill): Promise<string> {
  const keyId = whose === 'a' ? ids.keyA : ids.keyB
  const row = { ...createDebitRow(requestId, ids[whose]), keyId }
  assert.deepEqual(await store.postDebits([row]), ['posted'])
  const line = JSON.parse(oldLine({ whose, requestId }))
  return JSON.stringify({
    ...line,
    account_id: ids[whose],
    key_id: keyId,
    key: undefined,
    upstream: row.upstream,
    upstream_account: row.upstreamAccount,
    usage: { ...line.usage, cache_write_1h: usage.cacheWrite1hTokens },
  })
}

/** As the first release logged it. */
function oldLine({ whose, requestId }: Bill): string {
  return JSON.stringify({
    id: requestId,
    account: whose === 'a' ? 'one' : 'two',
    key: whose === 'a' ? 'sk-tri-one00000' : 'sk-tri-two00000',
    upstream: 'u',
    usage: {
      input: usage.inputTokens,
      cache_read: usage.cacheReadTokens,
      cache_write: usage.cacheWriteTokens,
      output: usage.outputTokens,
      reasoning: usage.reasoningTokens,
    },
    usage_source: 'final',
    cost: formatCredits(costNanos),
    outcome: 'ok',
  })
}
