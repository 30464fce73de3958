/*
 * Kills a process that posts debits at random times, by kill -9 (F-P1). A child opens the ledger like a server, and
 * posts debits as fast as it can. It prints each request id when the debit is acknowledged. The parent kills it
 * repeatedly, always on the same store, which is from the first release. In a third of the trials a locked database
 * forces debits into the spool first. At the end every acknowledged id must be in the ledger exactly once, and the
 * books must be right.
 *
 *     node bin/node.mjs scripts/kill-ledger.ts [trials, default 50]
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { createBooks } from '../src/accounts/books.ts'
import { parseHead } from '../src/accounts/chain.ts'
import { type Prices, priceNanos } from '../src/catalog/model.ts'
import { newRequestId } from '../src/ids.ts'
import { openLedger } from '../src/store/sqlite/ledger-client.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { createFirstRelease } from '../test/store/first-release.ts'

const prices: Prices = {
  inputNanos: 3_000_000_000n,
  cacheReadNanos: 300_000_000n,
  cacheWriteNanos: 3_750_000_000n,
  cacheWrite1hNanos: 6_000_000_000n,
  outputNanos: 15_000_000_000n,
}

const origin = {
  keyId: undefined,
  clientWire: 'chat',
  model: 'm',
  modelWire: 'chat',
  upstream: 'u',
  upstreamAccount: 'one',
} as const

const [first = '50', childPath] = process.argv.slice(2)
if (first === 'child') await postUntilKilled(childPath!)
else await runTrials(Number(first))

async function postUntilKilled(path: string): Promise<void> {
  const { ledger, accounts } = await openLedger({
    path,
    settleDeadlineMs: 60,
    busyMs: 20,
    foldMs: 20,
    clockMs: () => performance.now(),
    onFatal: (error) => {
      throw error
    },
    log: (_level, event) => {
      if (event === 'crash_recovery') process.stdout.write('recovered\n')
    },
  })
  process.stdout.write('ready\n')
  const account = [...accounts.values()][0]!
  // As many concurrent debits as in a busy server.
  for (let i = 0; i < 64; i++) void post()

  async function post(): Promise<void> {
    // Writing to a pipe is synchronous, so the printed ids are exactly the acknowledged ones.
    for (;;) {
      const usage = {
        inputTokens: 1 + Math.floor(Math.random() * 1_000),
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        cacheWrite1hTokens: 0,
        outputTokens: 1 + Math.floor(Math.random() * 1_000),
        reasoningTokens: 0,
        estimated: false,
      }
      const requestId = newRequestId()
      const amountNanos = priceNanos(prices, usage)
      const bill = {
        ...origin,
        pricedCalls: 0,
        calls: undefined,
        usage,
        usageSource: 'final',
        priceVersion: 'v1',
        prices,
        outcome: 'ok',
      } as const
      const result = await ledger.debit({
        requestId,
        accountId: account.id,
        amountNanos,
        createdMs: Date.now(),
        ...bill,
      })
      process.stdout.write(`${result} ${requestId}\n`)
    }
  }
}

async function runTrials(trials: number): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'triwire-kill-'))
  const path = join(dir, 'triwire.db')
  // A store of the first release, which the first child migrates, like the first start after an upgrade.
  createFirstRelease(path, { acct_one: 'one' }, [
    // The entry is recent, because a clock that is years past the newest entry must be confirmed (ruling Y15).
    { accountId: 'acct_one', requestId: 'req_before', atMs: Date.now() - 60_000 },
  ])
  const acked = new Set<string>()
  let [spooled, recoveries, slowestReadyMs] = [0, 0, 0]
  // Heads from between the kills. The ledger must still have everything that they cover (C15).
  const heads: string[] = []
  for (let trial = 0; trial < trials; trial++) {
    if (trial % 5 === 1) heads.push(await takeHead(path))
    const { readyMs } = await runTrial(trial % 3 === 2)
    slowestReadyMs = Math.max(slowestReadyMs, readyMs)
  }
  // A last start posts debits that the last kill left in the spool.
  await runTrial(false)

  const store = openStore(path, { create: false })
  const books = createBooks(store, Date.now)
  const findings: string[] = []
  for (const head of [undefined, ...heads])
    findings.push(...(await books.verify({ priceNanos, against: head === undefined ? undefined : parseHead(head) })))
  const booked = new Map<string, number>()
  for await (const { bill } of books.eachEntry())
    if (bill) booked.set(bill.requestId, (booked.get(bill.requestId) ?? 0) + 1)
  const lost = [...acked].filter((id) => !booked.has(id)).length
  const double = [...booked.values()].filter((count) => count > 1).length
  const { total, keptFrom } = await store.readUsage({
    ...{
      bounds: [0, 3_000_000],
      daysOf: undefined,
      by: [],
      only: {},
      sums: ['requests'],
      times: [],
      top: 1,
      sort: 'requests',
    },
  })
  // Entries of the first release are older than the kept figures.
  const [kept] = await store.sumEntries({ sinceMs: keptFrom * 900_000 }, [])
  const isCounted = Number(total.sums[0]![0]) === kept!.requests
  store.close()
  const file = new DatabaseSync(path)
  const { folded } = file.prepare('SELECT sum(requests) AS folded FROM sums_h').get() as { folded: number | null }
  file.close()
  rmSync(dir, { recursive: true })
  console.log(
    `${trials} kills: ${acked.size} debits acknowledged (${spooled} from the spool), ${booked.size} in the ledger, ` +
      `${recoveries} starts with a spool to post, ready after ${Math.round(slowestReadyMs)} ms at most\n` +
      `${folded ?? 0} folded into figures for reports, which are ${isCounted ? '' : 'NOT '}the ledger's with those that are not\n${lost} lost, ${double} double, ${findings.length} findings of verify, ${heads.length} heads`,
  )
  for (const finding of findings.slice(0, 10)) console.log(finding)
  if (lost || double || !isCounted || findings.length || !acked.size) process.exitCode = 1

  async function takeHead(path: string): Promise<string> {
    const store = openStore(path, { create: false })
    const { findings, head } = await createBooks(store, Date.now).audit({ priceNanos })
    store.close()
    if (head === undefined) throw new Error(`between two kills: ${findings.slice(0, 10).join('; ')}`)
    return head
  }

  async function runTrial(locks: boolean): Promise<{ readyMs: number }> {
    const startedMs = performance.now()
    const child = spawn(process.execPath, [import.meta.filename, 'child', path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const isReady = Promise.withResolvers<number>()
    child.on('exit', () => isReady.reject(new Error('the child ended by itself')))
    const lines = createInterface({ input: child.stdout })
    lines.on('line', (line) => {
      if (line === 'ready') isReady.resolve(performance.now() - startedMs)
      if (line === 'recovered') recoveries++
      const [result, id] = line.split(' ')
      // The kill may have truncated the last line.
      if (id?.length !== 36) return
      acked.add(id)
      if (result === 'spooled') spooled++
    })
    const whenClosed = new Promise((resolve) => child.on('close', resolve))
    const readyMs = await isReady.promise
    const blocker = locks ? new DatabaseSync(path, { timeout: 5_000 }) : undefined
    blocker?.exec('BEGIN IMMEDIATE')
    await pause(Math.random() * (locks ? 200 : 60))
    child.kill('SIGKILL')
    await whenClosed
    blocker?.close()
    return { readyMs }
  }
}
