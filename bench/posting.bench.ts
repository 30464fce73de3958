/*
 * Measures the cost of a debit for the store, over a hundred accounts: the CPU of the posting thread in batches of
 * several sizes, and the time of a debit at a fixed rate. It shows what a column or an index costs before it is
 * released. Prints one line of JSON. The serving thread's side is in ledger.bench.ts.
 *
 *     node bin/node.mjs bench/posting.bench.ts [debits a second, default 2000] [seconds, default 5]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBooks } from '../src/accounts/books.ts'
import { openLedger } from '../src/store/sqlite/ledger-client.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { billOf } from './bill.ts'
import { readNumbers } from './options.ts'

const usage = 'node bin/node.mjs bench/posting.bench.ts [debits a second] [seconds]'
const [rate = 0, seconds = 0] = readNumbers(usage, 2_000, 5)
const accountsCount = 100
const dir = mkdtempSync(join(process.env['BENCH_DIR'] ?? tmpdir(), 'triwire-bench-'))
const path = join(dir, 'triwire.db')
/** The key of each account. */
const keys = new Map<string, string>()

try {
  const setUp = openStore(path)
  const books = createBooks(setUp, Date.now)
  for (let i = 0; i < accountsCount; i++) {
    const { id } = await books.createAccount(`account ${i}`, 1_000_000_000_000n)
    keys.set(id, (await books.createKey(id)).id)
  }
  const batches = Object.fromEntries([1, 8, 64].map((size) => [size, measureBatches(size)]))
  setUp.close()
  console.log(JSON.stringify({ cpuMicrosecondsADebit: batches, openLoop: await measureOpenLoop() }))

  /** The CPU of this thread, with the commit but without the disk's sync. */
  function measureBatches(size: number): number {
    const ids = [...keys.keys()]
    const rounds = Math.ceil(4_096 / size)
    const rows = Array.from({ length: rounds }, () =>
      Array.from({ length: size }, (_, i) => {
        const accountId = ids[(i * 7) % ids.length]!
        return { ...billOf(keys.get(accountId)!), accountId }
      }),
    )
    const before = process.cpuUsage()
    for (const batch of rows) setUp.postDebits(batch)
    const { user, system } = process.cpuUsage(before)
    return Math.round((user + system) / (rounds * size))
  }

  async function measureOpenLoop() {
    const log = () => {}
    const onFatal = (error: Error) => {
      throw error
    }
    const opened = await openLedger({ path, settleDeadlineMs: 5_000, clockMs: () => performance.now(), onFatal, log })
    const accounts = [...opened.accounts.values()]
    const tookMs: number[] = []
    const all: Promise<void>[] = []
    const startedMs = performance.now()
    for (let sent = 0; sent < rate * seconds; ) {
      const due = Math.min(rate * seconds, Math.floor(((performance.now() - startedMs) * rate) / 1_000))
      for (; sent < due; sent++) {
        const account = accounts[(sent * 7) % accounts.length]!
        const fromMs = performance.now()
        const debit = opened.ledger.debit({ ...billOf(keys.get(account.id)!), accountId: account.id })
        all.push(debit.then(() => void tookMs.push(performance.now() - fromMs)))
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await Promise.all(all)
    const perSecond = Math.round((tookMs.length * 1_000) / (performance.now() - startedMs))
    await opened.close()
    tookMs.sort((a, b) => a - b)
    const at = (share: number) => Number(tookMs[Math.floor(tookMs.length * share)]!.toFixed(2))
    return { perSecond, p50Ms: at(0.5), p99Ms: at(0.99) }
  }
} finally {
  rmSync(dir, { recursive: true })
}
