/*
 * Measures the cost of a debit for the serving process, and the time until it is durable. The ledger is opened as a
 * server does, on a store in the temporary folder. First 64 debits always run at once, as on a busy server; then one.
 *
 *     node bin/node.mjs bench/ledger.bench.ts [debits, default 20000]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBooks } from '../src/accounts/books.ts'
import { openLedger } from '../src/store/sqlite/ledger-client.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { billOf } from './bill.ts'
import { readNumbers } from './options.ts'

const [debits = 0] = readNumbers('node bin/node.mjs bench/ledger.bench.ts [debits]', 20_000)
const dir = mkdtempSync(join(tmpdir(), 'triwire-bench-'))
const path = join(dir, 'triwire.db')
const setUp = openStore(path)
await createBooks(setUp, Date.now).createAccount('one', 10n ** 15n)
setUp.close()
const { ledger, accounts, close } = await openLedger({
  path,
  settleDeadlineMs: 5_000,
  clockMs: () => performance.now(),
  onFatal: (error) => {
    throw error
  },
  log: () => {},
})
const account = [...accounts.values()][0]!
await measure('warm-up', 64, debits / 10)
for (let round = 1; round <= 3; round++) {
  await measure(`64 at once, round ${round}`, 64, debits)
  await measure(`1 at a time, round ${round}`, 1, debits / 40)
}
await close()
rmSync(dir, { recursive: true })

async function measure(name: string, atOnce: number, count: number): Promise<void> {
  const takenMs: number[] = []
  const cpu = process.threadCpuUsage()
  const startedMs = performance.now()
  await Promise.all(Array.from({ length: atOnce }, post))
  const tookMs = performance.now() - startedMs
  const { user, system } = process.threadCpuUsage(cpu)
  takenMs.sort((a, b) => a - b)
  const at = (share: number) => takenMs[Math.floor(takenMs.length * share)]!.toFixed(2)
  const perDebitUs = (user + system) / takenMs.length
  console.log(
    `${name}: ${Math.round((takenMs.length / tookMs) * 1_000)} debits/s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ` +
      `${perDebitUs.toFixed(1)} µs of the serving thread each`,
  )

  async function post(): Promise<void> {
    while (takenMs.length < count) {
      const sentMs = performance.now()
      await ledger.debit({ ...billOf('key_1'), accountId: account.id })
      takenMs.push(performance.now() - sentMs)
    }
  }
}
