import assert from 'node:assert/strict'
import test, { before } from 'node:test'
import { type ChainedRow, digestEntry } from '../../../src/accounts/chain.ts'
import { type Database, openDatabase } from '../../../src/store/postgres/database.ts'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import {
  findMissing,
  giveBack,
  postCredits,
  postDebits,
  postFunctions,
  readBalances,
} from '../../../src/store/postgres/post.ts'
import type { Row } from '../../../src/store/sql/step.ts'
import { atEnd } from '../../support/at-end.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { patienceMs } from '../../support/waiting.ts'
import { costNanos, createDebitRow, prices, usage } from '../fixtures.ts'

const skip = withoutPostgres()
let postgres: Postgres
let count = 0

before(async () => {
  if (!skip) postgres = await startPostgres()
})

/** A database of its own with these accounts in it, and as many pools as are asked for. */
async function open(accountIds: readonly string[], pools = 1): Promise<[Database, ...Database[]]> {
  const url = postgres.createDatabase(`post_${++count}`)
  const databases = Array.from({ length: pools }, () => openDatabase({ url, max: 4, patienceMs, purpose: 'test' }))
  atEnd(() => Promise.all(databases.map((database) => database.close())))
  const [database] = databases as [Database]
  await migrate(database, url, postFunctions)
  for (const id of accountIds) {
    await database.query(
      `INSERT INTO triwire.accounts VALUES ($1, $1, 'active', nextval('triwire.revisions'), triwire.now_ms())`,
      [id],
    )
    await database.query('INSERT INTO triwire.balances (account_id) VALUES ($1)', [id])
  }
  return databases as [Database, ...Database[]]
}

/** Every entry follows from the one before it, digests by our own source, and the account is where its last one ends. */
async function checkChains(database: Database): Promise<Row[]> {
  const rows = await database.query('SELECT * FROM triwire.entries ORDER BY account_id COLLATE "C", seq')
  const ends = new Map<unknown, Row>()
  for (const row of rows) {
    const last = ends.get(row.account_id)
    const change = (row.kind === 'credit' ? 1n : -1n) * (row.amount as bigint)
    assert.equal(row.seq, ((last?.seq as bigint) ?? 0n) + 1n)
    assert.equal(row.balance_after, ((last?.balance_after as bigint) ?? 0n) + change)
    assert.equal(row.digest, digestEntry(row as unknown as ChainedRow, (last?.digest as string) ?? null))
    assert.ok((row.posted_ms as bigint) >= ((last?.posted_ms as bigint) ?? 0n))
    ends.set(row.account_id, row)
  }
  for (const end of await database.query('SELECT * FROM triwire.balances')) {
    const last = ends.get(end.account_id)
    assert.deepEqual(
      [end.balance, end.seq, end.posted_ms, end.digest],
      last ? [last.balance_after, last.seq, last.posted_ms, last.digest] : [0n, 0n, 0n, null],
    )
  }
  return rows
}

const requestId = (n: number) => `req_0199${n.toString(16).padStart(8, '0')}7abc8def0123456789ab`

test('C15 the digests that the database makes equal those of our own code, whatever an entry contains', {
  skip,
}, async () => {
  const [database] = await open(['acct_a', 'acct_ü'])
  const odd = [
    '',
    ' ',
    '"quoted", {braces}',
    'back\\slash',
    'tab\tand\nline',
    'ünïcode 漢字 🙂',
    '\u0001\u007f\u{10ffff}',
    '\ud800 alone',
    "'; DROP",
    'null',
    '\\u0000',
  ]
  const rows = odd.map((text, n) => ({
    ...createDebitRow(requestId(n), n % 2 ? 'acct_ü' : 'acct_a'),
    model: text,
    keyId: text,
    upstream: n % 3 ? text : undefined,
    priceVersion: `v${text}`,
    calls: n % 2 ? { [`kind${n}`]: 2 } : undefined,
    pricedCalls: n % 2 ? 2 : 0,
    createdMs: n,
  }))
  assert.deepEqual(new Set((await postDebits(database, rows)).postings), new Set(['posted']))
  assert.deepEqual(new Set((await postDebits(database, rows)).postings.with(7, 'exists')), new Set(['exists']))
  const written = await checkChains(database)
  assert.equal(written.length, odd.length)
  assert.deepEqual(new Set(written.map(({ model }) => model)), new Set(odd.map((text) => text.toWellFormed())))
  assert.deepEqual(new Set(written.map(({ digest }) => String(digest).slice(0, 2))), new Set(['1:', '2:']))
})

test('R5 a repeated debit is one debit, the same id with other content a conflict; balances are those after it', {
  skip,
}, async () => {
  const [database] = await open(['acct_a', 'acct_b'])
  const [one, two] = [createDebitRow(requestId(1), 'acct_b'), createDebitRow(requestId(2), 'acct_a')]
  assert.deepEqual(await postDebits(database, [one, two, one]), {
    postings: ['posted', 'posted', 'exists'],
    balances: [
      ['acct_a', -costNanos],
      ['acct_b', -costNanos],
    ],
  })
  const { postings } = await postDebits(database, [
    one,
    { ...two, amountNanos: 1n },
    { ...one, accountId: 'acct_gone' },
  ])
  assert.deepEqual(postings, ['exists', 'conflict', 'conflict'])
  assert.deepEqual(await readBalances(database, ['acct_b', 'acct_gone']), [['acct_b', -costNanos]])
  assert.equal((await checkChains(database)).length, 2)
})

test('C1 m23 a debit that no account can take or no column can hold is rejected alone, and the rest of its batch is posted', {
  skip,
}, async () => {
  const [database] = await open(['acct_a', 'acct_low'])
  const good = createDebitRow(requestId(0), 'acct_a')
  const wrong = [
    { accountId: 'acct_gone' },
    { accountId: 'acct_\0' },
    { amountNanos: 2n ** 63n },
    { amountNanos: -1n },
    { usage: { ...usage, inputTokens: 0.5 } },
    { model: 'with\0 in it' },
    { model: {} as string },
    { createdMs: 2n ** 63n },
    { pricedCalls: Number.NaN },
    { priceVersion: null },
    { prices: { ...prices, outputNanos: {} }, priceVersion: 'v2' },
    { requestId: 'req_\0' },
    {
      priceVersion:
        'too long for an index '.repeat(10_000) + Array.from({ length: 9_000 }, (_, n) => n.toString(36)).join(''),
    },
  ]
  const debits = wrong.map((change, n) => ({ ...good, requestId: requestId(n + 1), ...change }) as typeof good)
  const { postings } = await postDebits(database, [...debits, good])
  assert.deepEqual(postings, [...wrong.map(() => 'rejected'), 'posted'])
  // The least that 64 bits hold is reached exactly.
  const most = { ...good, accountId: 'acct_low', amountNanos: 2n ** 63n - 1n }
  const low = [most, { ...most, amountNanos: 1n }, { ...most, amountNanos: 1n }]
  const ended = await postDebits(
    database,
    low.map((debit, n) => ({ ...debit, requestId: requestId(90 + n) })),
  )
  assert.deepEqual(ended, { postings: ['posted', 'posted', 'rejected'], balances: [['acct_low', -(2n ** 63n)]] })
  await checkChains(database)
})

test('R5 F-S14 two pools post the same debits in different batches and account orders at once: each once, without deadlock', {
  skip,
}, async () => {
  const accountIds = Array.from({ length: 7 }, (_, n) => `acct_${n}`)
  const [database, other] = (await open(accountIds, 2)) as [Database, Database]
  const debits = Array.from({ length: 600 }, (_, n) => createDebitRow(requestId(n), `acct_${(n * 5) % 7}`))
  const cut = (all: typeof debits, size: number) =>
    Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size))
  const batches = [
    ...cut(debits, 20).map((batch) => postDebits(database, batch)),
    ...cut(debits.toReversed(), 13).map((batch) => postDebits(other, batch)),
  ]
  const postings = (await Promise.all(batches)).flatMap((posted) => posted.postings)
  assert.deepEqual(
    [
      postings.filter((posting) => posting === 'posted').length,
      postings.filter((posting) => posting === 'exists').length,
    ],
    [600, 600],
  )
  assert.equal((await checkChains(database)).length, 600)
})

test('C13 C8 a debit is returned once, with the next free reference, by whichever caller; the answer is what was booked', {
  skip,
}, async () => {
  const [database, other] = (await open(['acct_a', 'acct_b'], 2)) as [Database, Database]
  const ids = [1, 2, 3].map(requestId)
  await postDebits(database, [createDebitRow(ids[0]!, 'acct_a'), createDebitRow(ids[1]!, 'acct_b')])
  // As a copy of a ledger of the first release may have it.
  await database.transact((transaction) =>
    postCredits(
      transaction,
      [{ kind: 'post_credit', accountId: 'acct_b', amountNanos: 5n, reference: `return:${ids[0]}` }],
      1,
    ),
  )
  const asked = await Promise.all([giveBack(database, ids), giveBack(other, ids), giveBack(database, [ids[1]!])])
  for (const { returned } of asked.slice(0, 2)) assert.deepEqual(returned, ids.slice(0, 2))
  assert.deepEqual(await giveBack(other, ids), {
    returned: ids.slice(0, 2),
    balances: [
      ['acct_a', 0n],
      ['acct_b', 5n],
    ],
  })
  const returns = (await checkChains(database)).filter(({ usage_source }) => usage_source === 'waived')
  assert.deepEqual(
    returns.map(({ reference, amount, model }) => [reference, amount, model]),
    [
      [`return:${ids[0]}/2`, costNanos, 'm-large'],
      [`return:${ids[1]}`, costNanos, 'm-large'],
    ],
  )
  const missing = await findMissing(
    database,
    ids.map((id) => createDebitRow(id, 'acct_1')),
  )
  assert.deepEqual(
    Array.from(missing, ({ requestId }) => requestId),
    [ids[2]],
  )
})

test('B7 C13 an empty return writes to the disk, for a user without rights too', { skip }, async () => {
  postgres.run('CREATE ROLE plain LOGIN')
  postgres.run('CREATE DATABASE plain OWNER plain')
  const url = postgres.url.replace('tri@', 'plain@').replace(/postgres$/, 'plain')
  const database = openDatabase({ url, max: 1, patienceMs, purpose: 'test' })
  atEnd(() => database.close())
  await migrate(database, url, postFunctions)
  const written = () =>
    database.query('SELECT pg_current_wal_flush_lsn() AS flushed, pg_current_wal_insert_lsn() AS at')
  const [before] = await written()
  assert.deepEqual(await giveBack(database, []), { returned: [], balances: [] })
  const [{ flushed } = {}] = await database.query('SELECT pg_current_wal_flush_lsn() > $1::pg_lsn AS flushed', [
    before!.at,
  ])
  assert.equal(flushed, true)
})
