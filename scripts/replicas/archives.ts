import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createBooks } from '../../src/accounts/books.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import { priceNanos } from '../../src/catalog/model.ts'
import { readKeptList } from '../../src/config/list-text.ts'
import { readStorePlace } from '../../src/config/store-place.ts'
import { attachMonth, detachMonth, exportMonth } from '../../src/store/archive/archive.ts'
import { openArchiveStore } from '../../src/store/archive/open-end.ts'
import { createPostgresBooks } from '../../src/store/postgres/books.ts'
import { openDatabase } from '../../src/store/postgres/database.ts'
import { postDebits } from '../../src/store/postgres/post.ts'
import { SpendWindows } from '../../src/store/postgres/spend-windows.ts'
import { stopClock } from '../../test/store/engines.ts'
import { createDebitRow } from '../../test/store/fixtures.ts'
import { until } from '../../test/support/waiting.ts'
import { get, keepAsking, type Seen, tally } from './clients.ts'
import { judgeBooks } from './deaths.ts'
import { type Finding, finding, formatCounts, type Size, type Trial } from './report.ts'
import type { Setting } from './setting.ts'

export const archives: readonly Trial[] = [
  {
    name: 'a month archived under load',
    demand: 'export, detach and attach beside two serving replicas: no request refused or slow, nothing booked twice',
    isNightly: true,
    run: archiveUnderLoad,
  },
]

const works = {
  export: exportMonth,
  detach: detachMonth,
  attach: attachMonth,
  'detach again': detachMonth,
  'attach again': attachMonth,
}

/** The longest time of an answer beside a command, in ms. On an idle machine, guards of the ledger take a second. */
const slowMs = 5_000

async function archiveUnderLoad(setting: Setting, size: Size): Promise<Finding[]> {
  const { books, url, folder } = setting
  const { month, first, keys } = await fillPast(setting, size === 'whole' ? 50_000 : 10_000)
  const replicas = await Promise.all([1, 2].map(() => setting.startReplica()))
  await until(async () => ((await books.readFolding()).folded as number) >= first.length, 'the month is folded')
  let asked = 0
  const next = () => ({ key: keys[asked++ % keys.length]!, stream: asked % 2 === 0 })
  const all: Seen[] = []
  const findings: Finding[] = []
  for (const [name, work] of Object.entries(works)) {
    const stop = keepAsking(() => replicas, next, 60)
    await pause(500)
    const store = await openArchiveStore(readStorePlace(url, folder))
    const begunMs = performance.now()
    const wishes = { month, file: join(folder, 'month.archive'), act: { actor: 'cli:trial@here' } }
    const told = await work(store, { ...wishes, priceNanos, readList: readKeptList }).then(
      ({ entries, state }) => `${entries} entries, ${state}`,
      (error: Error) => error.message,
    )
    const tookMs = performance.now() - begunMs
    await store.close()
    const wrong = await books.verify({ priceNanos, readList: readKeptList })
    const again = await repeat(url, first.slice(0, 500))
    const ready = await Promise.all(replicas.map((replica) => get(`${replica.adminUrl}/readyz`)))
    await pause(500)
    const seen = await stop()
    all.push(...seen)
    const worstMs = Math.max(...seen.map(({ ms }) => ms))
    const isServed = seen.every(({ status }) => status === 200) && ready.every(({ status }) => status === 200)
    findings.push(
      finding(/entries/.test(told), `${name}: ${told}, in ${(tookMs / 1_000).toFixed(1)} s`),
      finding(isServed && worstMs < slowMs, `${formatCounts(tally(seen))}; slowest ${worstMs.toFixed(0)} ms`),
      finding(wrong.length === 0, wrong.length ? wrong.slice(0, 3).join('; ') : 'the books are right meanwhile'),
      finding(
        again.every((one) => one === 'exists'),
        `500 debits of the month once more: ${[...new Set(again)]}`,
      ),
    )
  }
  return [...findings, ...(await judgeBooks(setting, all, () => books.verify({ priceNanos, readList: readKeptList })))]
}

/** Posts debits of two past months with a clock that is set back. The accounts are used afterwards too. */
async function fillPast({ postgres, url }: Setting, perMonth: number) {
  const name = new URL(url).pathname.slice(1)
  const now = new Date()
  const startMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 4, 2)
  stopClock(postgres, name, startMs)
  const database = openDatabase({ url, max: 2, patienceMs: 60_000, purpose: 'past' })
  const past = createBooks(createPostgresBooks(database), Date.now)
  const windows = new SpendWindows({ timeZone: 'UTC', weekStarts: 'monday' })
  const accounts = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => {
      const { id } = await past.createAccount(`of the past ${n}`, 10n ** 16n)
      return { id, key: await past.createKey(id, { budget: { nanos: 2n ** 60n, per: 'day' } }) }
    }),
  )
  const first: Debit[] = []
  for (const at of [0, 1])
    for (let done = 0; done < perMonth; done += 500) {
      const createdMs = startMs + at * 31 * 86_400_000 + Math.floor((done / perMonth) * 20 * 86_400_000)
      await database.query('UPDATE turned.clock SET ms = $1', [createdMs])
      const debits = Array.from({ length: 500 }, (_, n) => {
        const { id, key } = accounts[n % accounts.length]!
        const requestId = `req_${createdMs.toString(16).padStart(12, '0')}7${(done + n).toString(16).padStart(19, '0')}`
        return { ...createDebitRow(requestId, id), keyId: key.id, createdMs }
      })
      await postDebits(database, debits, windows)
      if (at === 0) first.push(...debits)
    }
  await database.close()
  postgres.run(`ALTER DATABASE ${name} RESET search_path`)
  const month = new Date(startMs).toISOString().slice(0, 7)
  return { month, first, keys: accounts.map(({ key }) => key.key) }
}

async function repeat(url: string, debits: readonly Debit[]): Promise<readonly string[]> {
  const database = openDatabase({ url, max: 1, patienceMs: 60_000, purpose: 'again' })
  try {
    return (await postDebits(database, debits)).postings
  } finally {
    await database.close()
  }
}
