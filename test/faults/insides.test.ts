import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import { answerNanos } from '../support/native.ts'
import { type Answer, writeChunk } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'
import { type Bench, openRows, stream, type Told } from './bench.ts'

/* The rows F-P and F-S of docs/faults.md that take a hand inside: bugs of ours, threads, locks, the clock. */

const row = openRows()

const ok: Told = { client: 'whole', ledger: 'final', log: { outcome: 'ok', status: 200 } }
const failed = (outcome: string): Told => ({ client: 500, ledger: 'none', log: { outcome, code: 'internal_error' } })

/** A stream that shows something and waits. */
function held(bench: Bench): { answer: Answer; letGo(): void } {
  let rest = () => {}
  return {
    async answer(socket, request) {
      await stream(bench.shown, { end: false })(socket, request)
      rest = () => {
        for (const frame of bench.rest) writeChunk(socket, frame)
        socket.write('0\r\n\r\n')
      }
    },
    letGo: () => rest(),
  }
}

row('F-P7', 'a bug in one request: that one is an error or a cut, all others go on', { own: {} }, async (bench) => {
  const { upstreams } = bench.gateway.server.gateway.snapshots.current
  const { send } = upstreams
  const { answer, letGo } = held(bench)
  bench.upstream.play(answer)
  const other = bench.client({ stream: true })
  await other.saw('Hé')
  // An upstream side that breaks its contract is what a bug of ours looks like to a delivery.
  upstreams.send = (_target, _request, listener) => {
    queueMicrotask(() => listener.onHead(200, 'application/json', undefined as never))
    return { abort() {}, pause() {}, resume() {}, isSent: () => false, wasWritten: () => true }
  }
  await bench.check(await bench.ask(), failed('internal_error'))
  let goWrong = () => {}
  upstreams.send = (_target, _request, listener) => {
    listener.onHead(200, 'text/event-stream', new Map())
    listener.onData(Buffer.from(bench.shown.join('')))
    goWrong = () => listener.onData(undefined as never)
    return { abort() {}, pause() {}, resume() {}, isSent: () => false, wasWritten: () => true }
  }
  const client = bench.client({ stream: true })
  await client.saw('Hé')
  goWrong()
  await bench.check(await client.got, { client: 'cut', ledger: 'evidence', log: { outcome: 'internal_error' } })
  upstreams.send = send
  letGo()
  await bench.check(await other.got, ok)
})

row(
  'F-P8',
  'a bug while a bill is made: the request is an error or a cut, is told, and the next one is paid',
  { own: {} },
  async (bench) => {
    const { ledger } = bench.gateway.ledger
    const { debit } = ledger
    ledger.debit = () => {
      throw new Error('a bug of ours')
    }
    bench.upstream.play(bench.good.whole)
    await bench.check(await bench.ask(), failed('internal_error'))
    const { answer, letGo } = held(bench)
    bench.upstream.play(answer)
    const client = bench.client({ stream: true })
    await client.saw('Hé')
    letGo()
    await bench.check(await client.got, { client: 'cut', ledger: 'none', log: { outcome: 'internal_error' } })
    bench.upstream.play(bench.good.stream)
    ledger.debit = debit
    await bench.check(await bench.ask({ stream: true }), ok)
  },
)

row('F-P9', 'a heap that is full: new requests are 429, running ones stay', { own: {} }, async (bench) => {
  const { gateway } = bench.gateway.server
  const { answer, letGo } = held(bench)
  bench.upstream.play(answer)
  const client = bench.client({ stream: true })
  await client.saw('Hé')
  // The watch itself is tried in test/http/load-watch.test.ts: a heap of 85 % cannot be made without one's own test in it.
  const { isShedding } = gateway
  gateway.isShedding = () => true
  const got = await bench.ask()
  assert.ok(Number(got.headers['retry-after']) >= 1)
  await bench.check(got, { client: 429, ledger: 'none', log: { outcome: 'refused', code: 'rate_limit_exceeded' } })
  gateway.isShedding = isShedding
  letGo()
  await bench.check(await client.got, ok)
})

row(
  'F-P14',
  'the catalog changes under load: a request keeps the prices it began with',
  { isSlow: true, own: {} },
  async (bench) => {
    const { answer, letGo } = held(bench)
    bench.upstream.play(answer)
    const client = bench.client({ stream: true })
    await client.saw('Hé')
    const dear = { input: '30', cache_read: '3', output: '150' }
    const { id } = { id: `native-${bench.way.model}` }
    const model = {
      id,
      wire: bench.way.model,
      upstream: 'sim',
      upstream_model: `up-${bench.way.model}`,
      max_output_tokens: 8192,
      prices: dear,
    }
    bench.gateway.reload({ catalog: { pinned: '2026-11-01', models: [model] }, upstreams: bench.upstreams })
    letGo()
    const before = await client.got
    await bench.check(before, ok)
    assert.equal(bench.gateway.store.findEntry(before.id)?.amountNanos, answerNanos)
    bench.upstream.play(bench.good.stream)
    const after = await bench.ask({ stream: true })
    await bench.check(after, ok)
    assert.equal(bench.gateway.store.findEntry(after.id)?.amountNanos, 10n * answerNanos)
  },
)

const workers: Worker[] = []
process.on('worker', (worker) => void workers.push(worker))

// Until the thread is there again the debit waits for it, however long a busy machine takes.
const patient = { own: { config: { timeouts: { settle_deadline: '60s' } } } }

row('F-P15', 'the ledger’s thread dies: started again once, and nothing is lost', patient, async (bench) => {
  const worker = workers.at(-1)!
  const { answer, letGo } = held(bench)
  bench.upstream.play(answer)
  const client = bench.client({ stream: true })
  await client.saw('Hé')
  const blocker = new DatabaseSync(bench.gateway.storePath)
  blocker.exec('BEGIN IMMEDIATE')
  letGo()
  await worker.terminate()
  blocker.exec('COMMIT')
  blocker.close()
  await bench.check(await client.got, ok)
  await bench.gateway.logWith({ event: 'ledger_worker_restart' })
  bench.upstream.play(bench.good.whole)
  await bench.check(await bench.ask(), ok)
})

row(
  'F-S1',
  'another process locks the database: a short lock delays; at the settle deadline the debit is spooled, and new inference is 500',
  { isSlow: true, own: { config: { timeouts: { settle_deadline: '300ms' } } } },
  async (bench) => {
    bench.upstream.play(bench.good.stream)
    const blocker = new DatabaseSync(bench.gateway.storePath)
    blocker.exec('BEGIN IMMEDIATE')
    const waiting = bench.client({ stream: true })
    await waiting.saw('Hé')
    blocker.exec('COMMIT')
    await bench.check(await waiting.got, ok)
    blocker.exec('BEGIN IMMEDIATE')
    const late = await bench.ask({ stream: true })
    assert.equal(bench.gateway.store.findEntry(late.id), undefined)
    await bench.check(await bench.ask(), failed('internal_error'))
    assert.equal((await fetch(`${bench.gateway.url}/v1/models`)).status, 200)
    blocker.exec('COMMIT')
    blocker.close()
    await until(() => bench.gateway.ledger.ledger.backlog().blockedAccounts === 0)
    await bench.check(late, ok)
    bench.upstream.play(bench.good.whole)
    await bench.check(await bench.ask(), ok)
  },
)

row(
  'F-S20',
  'the wall clock jumps an hour: windows, deadlines and the order of entries do not care',
  { own: { config: { limits: { requests_per_minute: 3 } } } },
  async (bench) => {
    bench.upstream.play(bench.good.whole)
    const ids: string[] = []
    for (const hours of [0, 1, -2]) {
      bench.gateway.jump(hours * 3_600_000)
      const got = await bench.ask()
      ids.push(got.id)
      await bench.check(got, ok)
    }
    bench.gateway.jump(5 * 3_600_000)
    const limited: Told = { client: 429, ledger: 'none', log: { outcome: 'refused', code: 'rate_limit_exceeded' } }
    await bench.check(await bench.ask(), limited)
    bench.gateway.advance(60_000)
    const { answer, letGo } = held(bench)
    bench.upstream.play(answer)
    const client = bench.client({ stream: true })
    await client.saw('Hé')
    bench.gateway.jump(-3_600_000)
    bench.gateway.advance(100)
    letGo()
    await bench.check(await client.got, ok)
    const booked = [...bench.gateway.store.eachEntry()].flatMap(({ bill }) => bill?.requestId ?? [])
    assert.deepEqual(booked.slice(0, 3), ids)
    assert.equal(new Set(booked).size, booked.length)
    for (const line of await bench.gateway.logLines())
      assert.ok(!((line['end_ms'] as number) < 0), JSON.stringify(line))
  },
)

row(
  'F-S21',
  'a long reader and a backup under load: latency only, and the log is checkpointed behind them',
  { isSlow: true, own: {} },
  async (bench) => {
    const { storePath } = bench.gateway
    const reader = new DatabaseSync(storePath)
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM entries').get()
    bench.upstream.play(bench.good.whole)
    for (let i = 0; i < 60; i++) {
      const got = await bench.ask()
      if (i % 20 === 0) await bench.check(got, ok)
    }
    const grown = statSync(`${storePath}-wal`).size
    new DatabaseSync(storePath).exec(`VACUUM INTO '${storePath}.backup'`)
    await bench.check(await bench.ask(), ok)
    reader.exec('COMMIT')
    reader.close()
    for (let i = 0; i < 60; i++) await bench.ask()
    await bench.check(await bench.ask(), ok)
    const wal = statSync(`${storePath}-wal`).size
    assert.ok(wal <= 67_108_864 && grown > 0, `${grown} ${wal}`)
    const backup = new DatabaseSync(`${storePath}.backup`)
    assert.equal(backup.prepare('PRAGMA integrity_check').get()!['integrity_check'], 'ok')
    backup.close()
  },
)

row(
  'F-S22',
  'credits and debits at once, a credit sent twice: one credit for a reference',
  { isSlow: true, own: { credit: '1' } },
  async (bench) => {
    const { store } = bench.gateway
    bench.upstream.play(bench.good.whole)
    const asks = Array.from({ length: 20 }, () => bench.ask())
    const told: string[] = []
    for (let i = 0; i < 20; i++) {
      told.push(store.credit('tester', 1_000n, `ref-${i >> 1}`))
      await new Promise((done) => setImmediate(done))
    }
    assert.deepEqual(
      [told.filter((one) => one === 'posted').length, told.filter((one) => one === 'exists').length],
      [10, 10],
    )
    const all = await Promise.all(asks)
    await bench.check(all[0]!, ok)
    await bench.check(all.at(-1)!, ok)
    const { id } = store.findAccount('tester')
    const sum = [...store.eachEntry()]
      .filter((entry) => entry.accountId === id)
      .reduce((total, one) => total + (one.bill ? -one.amountNanos : one.amountNanos), 0n)
    const balance = () => bench.gateway.ledger.balances.get(id)!.balanceNanos
    await until(() => balance() === 1_000_000_000n + 10_000n - 20n * answerNanos, `${sum}`)
  },
)
