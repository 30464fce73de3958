import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import test, { type TestContext } from 'node:test'
import { parseHead } from '../../src/accounts/chain.ts'
import { formatCredits } from '../../src/accounts/credit.ts'
import type { LogLine } from '../../src/accounts/entries.ts'
import { readLogLine } from '../../src/cli/access-log.ts'
import { type Operator, openStore } from '../support/operator.ts'
import { createFirstRelease, type OldEntry } from './first-release.ts'
import { costNanos, createDebitRow, createPath, usage, verifyOptions } from './fixtures.ts'
import { forge, rechain, redigest } from './forge.ts'

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
  play: (path: string, ids: Ids) => void
  finds: readonly Finder[]
  /** Where it is another in a store whose entries the first release made. */
  findsOld?: readonly Finder[]
}

/** Past the triggers. */
function sql(text: (ids: Ids) => string, then: (db: DatabaseSync) => void = () => {}): Forgery['play'] {
  return (path, ids) =>
    forge(path, (db) => {
      db.exec(text(ids))
      then(db)
    })
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
  `UPDATE entries SET seq = -id WHERE request_id IN ('req_3', 'req_4');
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
  { name: 'prices changed', play: sql(() => 'UPDATE prices SET output = 1'), finds: ['plain'] },
  {
    name: 'an account deleted and its entries left',
    play: sql(({ b }) => `DELETE FROM accounts WHERE id = '${b}'`),
    finds: ['plain'],
    // Its lines name the account by its name only, and that is gone.
    findsOld: ['plain', 'log'],
  },
  {
    name: "an account's last three entries deleted, number and balance set back",
    play: sql(cutTail),
    finds: ['log', 'against'],
  },
  { name: 'tokens and amount lowered, balances made to fit', play: sql(cut, rechain), finds: ['plain', 'log'] },
  { name: 'the same, digests made anew', play: sql(cut, redigest), finds: ['log', 'against'] },
  { name: 'a bill turned `waived`, balances made to fit', play: sql(waive, rechain), finds: ['plain', 'log'] },
  { name: 'the same, digests made anew too', play: sql(waive, redigest), finds: ['log', 'against'] },
  { name: 'the first credit raised, balances made to fit', play: sql(raise, rechain), finds: ['plain'] },
  { name: 'the first credit raised, digests made anew', play: sql(raise, redigest), finds: ['against'] },
  { name: 'a forged credit by plain `INSERT`', play: sql(insertCredit), finds: ['plain'] },
  { name: 'a forged credit at the end, digests made anew', play: sql(insertCredit, redigest), finds: [] },
  {
    name: 'a forged credit among what a head covers, digests made anew',
    play: sql(insertOldCredit, redigest),
    finds: ['against'],
  },
  { name: 'a debit given back that was not refused, digests made anew', play: sql(giveBack, redigest), finds: ['log'] },
  {
    name: "two accounts' bills exchanged, balances made to fit",
    play: sql(exchange, rechain),
    finds: ['plain', 'log'],
  },
  {
    name: "two accounts' bills exchanged, digests made anew",
    play: sql(exchange, redigest),
    finds: ['plain', 'log', 'against'],
    findsOld: ['log', 'against'],
  },
  { name: 'the same, their keys exchanged too', play: sql(exchangeWithKeys, redigest), finds: ['log', 'against'] },
  {
    name: 'a whole account deleted, with its keys and entries',
    play: sql(
      ({ b }) => `DELETE FROM entries WHERE account_id = '${b}'; DELETE FROM keys WHERE account_id = '${b}';
        DELETE FROM accounts WHERE id = '${b}'`,
    ),
    finds: ['log', 'against'],
  },
  {
    name: 'triggers dropped',
    play: (path) => raw(path, 'DROP TRIGGER entries_are_not_changed'),
    finds: ['plain'],
  },
  {
    name: 'a trigger that does nothing in the place of ours',
    play: (path) =>
      raw(
        path,
        'DROP TRIGGER entries_are_not_deleted; CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries BEGIN SELECT 1; END',
      ),
    finds: ['plain'],
  },
  {
    name: 'a key moved to another account, having been used since the upgrade',
    play: sql(({ b, keyA }) => `UPDATE keys SET account_id = '${b}' WHERE id = '${keyA}'`),
    finds: ['plain'],
  },
  {
    name: 'a bill put on a key of another account, digests made anew',
    play: sql(({ keyB }) => `UPDATE entries SET key_id = '${keyB}' WHERE request_id = 'req_3'`, redigest),
    finds: ['plain', 'log', 'against'],
  },
  {
    name: 'key and upstream taken out of a bill, digests made anew',
    play: sql(
      () => "UPDATE entries SET key_id = NULL, upstream = NULL, upstream_account = NULL WHERE request_id = 'req_3'",
      redigest,
    ),
    finds: ['log', 'against'],
    // It never had them.
    findsOld: [],
  },
  {
    name: 'the moment of the last head taken away',
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
    play: (path) => {
      const db = new DatabaseSync(path)
      const names = db
        .prepare("SELECT name FROM pragma_table_info('entries')")
        .all()
        .map(({ name }) => name as string)
      const values = names.map((name) => (name === 'amount' ? '0' : name))
      db.exec(`INSERT OR REPLACE INTO entries (${names}) SELECT ${values} FROM entries WHERE request_id = 'req_3'`)
      db.close()
    },
    // Nothing is to be found: the insert is ignored.
    finds: [],
  },
]

function raw(path: string, text: string): void {
  const db = new DatabaseSync(path)
  db.exec(text)
  db.close()
}

/** Ids of what the forgeries name; a store of the first release has its own. */
type Ids = { a: string; b: string; keyA: string; keyB: string }

type Case = { path: string; store: Operator; log: LogLine[]; ids: Ids; head: string }

for (const { name, play, finds, findsOld = finds } of forgeries) {
  test(`C15 ${name}: found by ${finds.join(', ')}`, (t) => {
    assert.deepEqual(findersOf(createOurs(t), play), finds)
  })
  test(`C15 ${name}, in a store of the first release: found by ${findsOld.join(', ') || 'nothing'}`, (t) => {
    assert.deepEqual(findersOf(createOld(t), play), findsOld)
  })
}

test('C15 docs/ledger.md has the table of forgeries as it was played here', () => {
  const page = readFileSync(new URL('../../docs/ledger.md', import.meta.url), 'utf8')
  const rows = forgeries.map(({ name, finds, findsOld }) => {
    const cells = finders.map((finder) => (finds.includes(finder) ? 'found' : '–'))
    const old = findsOld ? findsOld.map((finder) => labels[finder]).join(', ') || 'nothing' : 'the same'
    return `| ${name} | ${cells.join(' | ')} | ${old} |`
  })
  const heading = `| Forgery | ${finders.map((finder) => labels[finder]).join(' | ')} | In entries of the first release |`
  const table = [heading, '|---|---|---|---|---|', ...rows].join('\n')
  assert.ok(page.includes(table), `docs/ledger.md should have:\n${table}`)
})

/** What is found by each way of looking that plain reading does not find as well. */
function findersOf({ path, store, log, ids, head }: Case, play: Forgery['play']): Finder[] {
  const against = parseHead(head)
  assert.deepEqual(store.verify({ ...verifyOptions, log, against }), [], 'nothing is found before the forgery')
  play(path, ids)
  const plain = store.verify(verifyOptions)
  const finds: Record<Finder, boolean> = {
    plain: plain.length > 0,
    log: store.verify({ ...verifyOptions, log }).length > plain.length,
    against: store.verify({ ...verifyOptions, against }).length > plain.length,
  }
  return finders.filter((finder) => finds[finder])
}

/** Two accounts, three bills each, a head, and one bill each after it. */
function createOurs(t: TestContext): Case {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const [a, b] = [store.createAccount('one', 9_000_000n).id, store.createAccount('two', 9_000_000n).id]
  const ids = { a, b, keyA: store.createKey(a).id, keyB: store.createKey(b).id }
  const lines = [...before].map((bill) => post(store, ids, bill))
  const { head } = store.audit(verifyOptions)
  lines.push(...after.map((bill) => post(store, ids, bill)))
  return { path, store, ids, log: lines.map((line) => readLogLine(line)!), head: head! }
}

/** The same, but the first release made it up to the head. */
function createOld(t: TestContext): Case {
  const path = createPath(t)
  const ids = { a: 'acct_a', b: 'acct_b', keyA: 'key_acct_a', keyB: 'key_acct_b' }
  const entries: OldEntry[] = [
    { accountId: ids.a, creditNanos: 9_000_000n, reference: 'create:acct_a' },
    { accountId: ids.b, creditNanos: 9_000_000n, reference: 'create:acct_b' },
    ...before.map(({ whose, requestId }) => ({ accountId: ids[whose], requestId })),
  ]
  createFirstRelease(path, { acct_a: 'one', acct_b: 'two' }, entries)
  const store = openStore(path)
  t.after(() => store.close())
  const { head } = store.audit(verifyOptions)
  const lines = [...before.map(oldLine), ...after.map((bill) => post(store, ids, bill))]
  return { path, store, ids, log: lines.map((line) => readLogLine(line)!), head: head! }
}

type Bill = { whose: 'a' | 'b'; requestId: string }

const before: Bill[] = ['a', 'b', 'a', 'b', 'a', 'b'].map((whose, i) => ({
  whose: whose as 'a',
  requestId: `req_${i + 1}`,
}))
const after: Bill[] = [
  { whose: 'a', requestId: 'req_7' },
  { whose: 'b', requestId: 'req_8' },
]

/** Posts it and says what the log of today says of it. */
function post(store: Operator, ids: Ids, { whose, requestId }: Bill): string {
  const keyId = whose === 'a' ? ids.keyA : ids.keyB
  const row = { ...createDebitRow(requestId, ids[whose]), keyId }
  assert.deepEqual(store.postDebits([row]), ['posted'])
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
