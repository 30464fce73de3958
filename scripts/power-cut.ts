/**
 * Cuts the power of a ledger whose disk fails syncs, many times (B8). What was told to be paid must be in the ledger, or in
 * the spool that the next start posts, exactly once. The disk is scripts/power-cut.c, so this takes Linux and a C compiler.
 *
 *     node bin/node.mjs scripts/power-cut.ts [cuts, default 20]
 */
import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import type { Account } from '../src/accounts/account.ts'
import { createBooks } from '../src/accounts/books.ts'
import { priceNanos } from '../src/catalog/model.ts'
import { openLedger } from '../src/store/sqlite/ledger-client.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { createDebit } from '../test/store/fixtures.ts'

const names = ['triwire.db', 'triwire.db-wal', 'triwire.db.spool']

/**
 * Of every so many syncs so many in a row fail. Where another process has the store open, its index of the log survives;
 * where none has, the log is read from its beginning when it is opened again, with what a failed commit has left in it.
 */
const disks = [
  { every: 1_000_000_000, fails: 0, isShared: false },
  { every: 30, fails: 1, isShared: false },
  { every: 30, fails: 6, isShared: false },
  { every: 30, fails: 6, isShared: true },
  { every: 1_000_000_000, fails: 999_999_980, isShared: false },
] as const

const { positionals } = parseArgs({ allowPositionals: true })
if (positionals[0] === 'pay') await pay(positionals[1]!, positionals[2]!)
else await cutAll(Number(positionals[0] ?? 20))

async function cutAll(cuts: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-cut-'))
  const disk = join(folder, 'disk.so')
  execFileSync('cc', ['-O1', '-shared', '-fPIC', '-o', disk, join(import.meta.dirname, 'power-cut.c'), '-ldl'])
  for (const { every, fails, isShared } of disks) {
    const sums = { told: 0, lost: 0, double: 0, findings: 0 }
    for (let i = 0; i < cuts; i++) {
      const one = await cut(join(folder, `${every}-${fails}-${isShared}-${i}`), disk, { every, fails, isShared })
      for (const name of ['told', 'lost', 'double', 'findings'] as const) sums[name] += one[name]
    }
    const how = `${fails} of ${every} syncs fail${isShared ? ', another process has the store open' : ''}`
    const { told, lost, double, findings } = sums
    console.log(
      `${cuts} cuts, ${how}: ${told} told, ${told - lost} found, ${lost} lost, ${double} double, ${findings} findings`,
    )
    if (lost || double || findings || !told) process.exitCode = 1
  }
  rmSync(folder, { recursive: true })
}

async function cut(
  folder: string,
  disk: string,
  { every, fails, isShared }: { every: number; fails: number; isShared: boolean },
) {
  const [running, left] = [join(folder, 'running'), join(folder, 'left')]
  for (const path of [running, left]) mkdirSync(path, { recursive: true, mode: 0o700 })
  const store = openStore(join(running, names[0]!))
  const { id } = await createBooks(store, Date.now).createAccount('one', 10n ** 15n)
  store.close()
  copyFileSync(join(running, names[0]!), join(left, names[0]!))
  const other = isShared ? openStore(join(running, names[0]!)) : undefined

  const command = [import.meta.filename, 'pay', join(running, names[0]!), id]
  const failing = {
    LD_PRELOAD: disk,
    CUT_FOLDER: running,
    CUT_DISK: left,
    CUT_EVERY: `${every}`,
    CUT_FAILS: `${fails}`,
  }
  const child = spawn(process.execPath, command, {
    env: { ...process.env, ...failing },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const told = new Set<string>()
  const enough = 100 + Math.floor(Math.random() * 400)
  for await (const line of createInterface({ input: child.stdout })) {
    told.add(line)
    if (told.size === enough) child.kill('SIGKILL')
  }
  other?.close()
  return { told: told.size, ...(await judge(left, told)) }
}

/** Starts on what the disk has, as the next server does. */
async function judge(left: string, told: ReadonlySet<string>) {
  const path = join(left, names[0]!)
  const log: string[] = []
  const ledger = await openLedger({
    path,
    settleDeadlineMs: 1_000,
    clockMs: () => performance.now(),
    onFatal: (error) => log.push(error.message),
    log: (_level, event) => log.push(event),
  })
  await ledger.close()
  const store = openStore(path, { create: false })
  const booked = new Map<string, number>()
  for (const { bill } of store.eachEntry()) if (bill) booked.set(bill.requestId, (booked.get(bill.requestId) ?? 0) + 1)
  const findings = store.verify({ priceNanos })
  store.close()
  for (const finding of findings.slice(0, 3)) console.error(finding)
  return {
    lost: [...told].filter((requestId) => !booked.has(requestId)).length,
    double: [...booked.values()].filter((count) => count > 1).length,
    findings: findings.length,
  }
}

/** The process that dies: debits in groups, each told on stdout when it counts as paid. */
async function pay(path: string, accountId: string): Promise<void> {
  const { ledger } = await openLedger({
    path,
    settleDeadlineMs: 300,
    clockMs: () => performance.now(),
    onFatal: (error) => console.error(error.message),
    log: () => {},
  })
  const account: Account = { id: accountId, name: 'one', state: 'active' }
  for (let i = 0; ; i++) {
    const ids = Array.from({ length: 20 }, (_, k) => `req_${i}_${k}`)
    const ends = await Promise.allSettled(ids.map((requestId) => ledger.debit(createDebit(requestId, account))))
    const paid = ids.filter((_, k) => ends[k]!.status === 'fulfilled')
    if (paid.length) process.stdout.write(`${paid.join('\n')}\n`)
  }
}
