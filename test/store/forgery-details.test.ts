import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test, { before } from 'node:test'
import { detailColumns, parseHead } from '../../src/accounts/chain.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import { type PriceList, priceNanos } from '../../src/catalog/model.ts'
import { setAt } from '../../src/catalog/price-list.ts'
import { readPriceList } from '../../src/config/price-list.ts'
import { type PricesEntry, prices as pricesSchema } from '../../src/config/price-schema.ts'
import { onEachStore, type TestStore } from './engines.ts'
import { createDebitRow, usage, verifyOptions } from './fixtures.ts'
import { type Forger, redigest } from './forge.ts'

/*
 * Law 4 of issue 46: the rates of each entry are those that its list has for its moment, band, tier and geography, and `verify`
 * finds each forgery of what form 3 says. docs/ledger.md has the table.
 */

const written = {
  ...{ input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' },
  bands: [{ name: 'peak', zone: 'Asia/Shanghai', days: 'mon-fri', hours: ['09:00-12:00', '22:00-02:00'], times: '2' }],
  tiers: { flex: '0.5', priority: '1.8' },
  geos: { us: '1.1' },
}
const parse = (entry: unknown) => readPriceList(pricesSchema.parse(entry) as PricesEntry)
const list = parse(written)
const other = parse({ ...written, tiers: { ...written.tiers, priority: '2' } })
const [cheap, dear] = [parse({ input: '1', output: '2' }), parse({ input: '2', output: '2' })].map(
  ({ rows }) => rows[0]!.sets[0]!.get(' ')!,
)

/** Wednesday 10:00 of Shanghai, and 13:00. */
const [peakMs, baseMs] = [Date.UTC(2026, 10, 4, 2), Date.UTC(2026, 10, 4, 5)]

/** A debit as the settle step makes it of a list. */
function priced(requestId: string, accountId: string, from: PriceList, facts: Parameters<typeof setAt>[1]): Debit {
  const set = setAt(from, facts)
  const { band, tier, geo, version, prices } = set
  return {
    ...createDebitRow(requestId, accountId),
    ...{ createdMs: facts.at, priceVersion: version, prices, amountNanos: priceNanos(prices, usage) },
    details: {
      ...{ list: from.kept!.digest, band: band ?? undefined, tier: tier ?? undefined, geo: geo ?? undefined },
      ...{ person: 'person_1', labels: 'project=apollo', alias: 'smart', moved: 'cooling' },
      ...{ costVersion: cheap!.version, costNanos: priceNanos(cheap!.prices, usage), costReported: '0.5' },
    },
    listText: from.kept!.text,
    costPrices: cheap!.prices,
  }
}

/** Changes of the entry `req_1`, which was billed at the peak as `priority`, and what finds each with digests recomputed. */
const forgeries: { name: string; sets: string; plain: boolean }[] = [
  { name: 'the price list changed', sets: `list = '${other.kept!.digest}'`, plain: true },
  { name: 'the price list removed', sets: 'list = NULL', plain: true },
  { name: 'an entry names a price list that the ledger does not have', sets: `list = 'none'`, plain: true },
  { name: 'the band changed', sets: 'band = NULL', plain: true },
  { name: 'the tier changed', sets: `tier = 'flex'`, plain: true },
  { name: 'the geography changed', sets: `geo = 'us'`, plain: true },
  { name: 'the time of the answer moved out of its band', sets: `created_ms = ${baseMs}`, plain: true },
  { name: 'the cost changed', sets: 'cost = cost + 1', plain: true },
  { name: 'the prices of the cost changed', sets: `cost_version = '${dear!.version}'`, plain: true },
  { name: 'the cost that the provider reported changed', sets: `cost_reported = '0.6'`, plain: false },
  { name: 'the person changed', sets: `person = 'person_2'`, plain: false },
  { name: 'the labels changed', sets: `labels = 'project=gemini'`, plain: false },
  { name: 'the name of the chain of models changed', sets: `alias = 'cheap'`, plain: false },
  { name: 'the cause of a move changed', sets: `moved = 'full'`, plain: false },
]

onEachStore((engine) => {
  let open: () => Promise<TestStore>
  let head = ''
  before(async () => {
    open = await engine.prepare(async (store) => {
      const { id } = await store.createAccount('one', 100_000_000n)
      const cases = [{ at: peakMs, tier: 'priority' }, { at: baseMs, tier: 'flex', geo: 'us' }, { at: baseMs }]
      const rows = cases.map((facts, at) => priced(`req_${at + 1}`, id, list, facts))
      rows.push(priced('req_other', id, other, { at: peakMs, tier: 'priority' }))
      rows.push({ ...priced('req_dear', id, list, { at: peakMs }), costPrices: dear!.prices })
      rows[4]!.details = { ...rows[4]!.details, costVersion: dear!.version, costNanos: priceNanos(dear!.prices, usage) }
      assert.deepEqual(
        await store.postDebits(rows),
        rows.map(() => 'posted'),
      )
      await store.giveBack(['req_2'])
      head = (await store.audit(verifyOptions)).head!
    })
  })

  const look = async (work: (forger: Forger) => Promise<void>) => {
    const store = await open()
    await store.forge(work)
    const plain = await store.verify(verifyOptions)
    const against = await store.verify({ ...verifyOptions, against: parseHead(head) })
    return { plain: plain.length > 0, against: against.length > plain.length, findings: plain }
  }
  const change = (sets: string) => `UPDATE entries SET ${sets} WHERE request_id = 'req_1'`

  test('law 4 nothing is found before a forgery', async () => {
    assert.deepEqual((await look(async () => {})).findings, [])
  })

  for (const { name, sets, plain } of forgeries)
    test(`law 4 C15 ${name}: found with its old digest, and ${plain ? 'by plain' : 'only by --against'} with a new one`, async () => {
      assert.equal((await look(({ run }) => run(change(sets)))).plain, true)
      const anew = await look(async (forger) => {
        await forger.run(change(sets))
        await redigest(forger)
      })
      assert.deepEqual([anew.plain, anew.against], [plain, true], `${anew.findings}`)
    })

  test('law 4 a bill at the base prices of its list is found, even if its amount is right for those prices', async () => {
    const { version, prices } = setAt(list, { at: baseMs })
    const { findings } = await look(async (forger) => {
      const amount = priceNanos(prices, usage)
      await forger.run(change(`price_version = '${version}', amount = ${amount}`))
      await redigest(forger)
    })
    assert.equal(findings.length, 1)
    assert.match(
      findings[0]!,
      /^request req_1: billed by prices \w+, and peak, priority of its price list has the prices/,
    )
  })

  test('law 4 a changed or deleted text of a price list is found', async () => {
    for (const sql of [`UPDATE lists SET text = replace(text, '"end"', '"start"')`, 'DELETE FROM lists'])
      assert.match(
        (await look(({ run }) => run(sql))).findings[0]!,
        /^request req_1: its price list \S+ cannot be read/,
      )
  })
})

test('law 4 each column of form 3 that traffic fills is forged above or explained', () => {
  const forged = detailColumns.filter((column) => forgeries.some(({ sets }) => sets.startsWith(`${column} =`)))
  // What a fall-back and a correction say is not of this bill; both are in the digest like all others.
  const rest = detailColumns.filter((column) => !forged.includes(column))
  assert.deepEqual(rest, ['fell_back_from', 'fell_back_cause', 'effective'])
})

test('law 4 docs/ledger.md has the table of forgeries of form 3', () => {
  const page = readFileSync(new URL('../../docs/ledger.md', import.meta.url), 'utf8')
  const rows = forgeries.map(({ name, plain }) => `| ${name}, digests recomputed | ${plain ? 'found' : '–'} | found |`)
  const table = ['| Forgery in form 3 | plain | `--against` |', '|---|---|---|', ...rows].join('\n')
  assert.ok(page.includes(table), `docs/ledger.md should have:\n${table}`)
})
