import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import type { Debit } from '../../src/accounts/ledger.ts'
import { exportProviders } from '../../src/accounts/reconcile/exports.ts'
import { createDebitRow, createPath, usage } from '../store/fixtures.ts'
import { openStore } from '../support/operator.ts'
import { type Counted, startMs, writers } from '../support/usage-exports.ts'
import { runWarm } from './run.ts'

test('issue 46.9 reconcile compares a file with the ledger, fails on unexplained differences, and writes nothing', async (t) => {
  const path = createPath(t)
  const nowMs = Date.parse('2026-11-19T10:30:00Z')
  const store = openStore(path, { nowMs: () => nowMs })
  const { id } = store.createAccount('one', 9_000_000n)
  store.postDebits([{ ...createDebitRow('req_1', id), upstream: 'openai-eu', model: 'm-large', createdMs: nowMs }])
  const entries = () =>
    JSON.stringify([...store.eachEntry()], (_, value) => (typeof value === 'bigint' ? `${value}` : value))
  const before = entries()
  // Tokens that are written for an hour are part of all that are written.
  const { inputTokens, cacheReadTokens, cacheWriteTokens: cacheWrites, outputTokens } = usage
  const file = join(dirname(path), 'usage.json')
  const compare = async (more: number, ...args: string[]) => {
    const row = {
      model: 'm-large-2026-01-01',
      input_tokens: inputTokens + cacheReadTokens + cacheWrites,
      input_cached_tokens: cacheReadTokens,
      input_cache_write_tokens: cacheWrites,
      output_tokens: outputTokens + more,
      num_model_requests: 1,
    }
    const startS = Date.parse('2026-11-19T00:00:00Z') / 1_000
    const bucket = { start_time: startS, end_time: startS + 86_400, results: [row] }
    // Programs of Windows put a byte order mark before a text.
    writeFileSync(file, `\ufeff${JSON.stringify({ data: [bucket] })}`)
    return runWarm(['reconcile', file, '--provider', 'openai', '--store', path, ...args])
  }
  const right = await compare(0)
  assert.deepEqual([right.code, right.stdout], [0, '4 figures compared, 0 tokens unexplained\n'])
  const wrong = await compare(1, '--json')
  assert.equal(wrong.code, 1)
  const { rows, unexplained } = JSON.parse(wrong.stdout)
  assert.deepEqual([unexplained, rows[0].kind, rows[0].export - rows[0].billed], [1, 'output', 1])
  const nobody = await compare(0, '--upstream', 'other')
  assert.equal(nobody.code, 1)
  assert.match(nobody.stderr, /no debit of such an upstream .* with --upstream/)
  const strangers = await compare(0, '--owner', 'key_ours')
  assert.equal(strangers.code, 1)
  assert.match(strangers.stderr, /No row .* has models m-large-2026-01-01 of owners none; .* --model .* --owner/)
  const renamed = await compare(0, '--model', 'M-Large=other')
  assert.equal(renamed.code, 1)
  assert.match(renamed.stderr, /No row of the export matches a debit.* the ledger has m-large: .* --model theirs=ours/)
  assert.equal(entries(), before)
  store.close()
})

for (const provider of exportProviders)
  test(`issue 46.9 the command names each class of difference in an export of ${provider}`, async (t) => {
    const path = createPath(t)
    const { windowMs, write } = writers[provider]
    const store = openStore(path, { nowMs: () => startMs + 9 * windowMs })
    const { id } = store.createAccount('one', 9_000_000_000n)
    const tokens = { input: 100, cache_read: 0, cache_write: 0, output: 20 }
    const costPrices = {
      inputNanos: 10n ** 9n,
      cacheReadNanos: 0n,
      cacheWriteNanos: 0n,
      cacheWrite1hNanos: 0n,
      outputNanos: 10n ** 9n,
    }
    const details = { costVersion: 'c1', costNanos: 120_000n }
    const own = { ...usage, inputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0 }
    const debit = (window: number, part: Partial<Debit> = {}) => ({
      ...{ ...createDebitRow(`req_${window}`, id), model: 'm-large', upstream: `${provider}-eu`, usage: own },
      ...{ createdMs: startMs + (window + 0.5) * windowMs, details, costPrices, ...part },
    })
    store.postDebits([
      debit(0),
      debit(1, { createdMs: startMs + 2 * windowMs - minuteMs }),
      debit(3),
      debit(4, { usageSource: 'partial', outcome: 'client_abort' }),
      debit(5, { usageSource: 'estimated' }),
      debit(6),
      debit(7),
    ])
    store.giveBack(['req_0'])
    store.close()
    const row = (window: number, output = 20, more: Partial<Counted> = {}): Counted => ({
      ...{ window, model: 'm-large', requests: 1, tokens: { ...tokens, output }, ...more },
    })
    const rows = [
      ...[row(0), row(2), row(3, 30, { requests: 2 }), row(4, 70), row(5, 25)],
      ...[row(6, 20, { charge: '0' }), row(7, 20, { charge: '0.00018' }), row(8, 20, { model: 'stranger' })],
    ]
    const file = join(dirname(path), 'export')
    writeFileSync(file, write(rows))
    const log = join(dirname(path), 'log')
    writeFileSync(log, '{"id":"req_3","attempts":2}\n')
    const { code, stdout } = await runWarm(['reconcile', file, '--provider', provider, '--store', path, '--log', log])
    const shown = stdout.split('\n').map((line) => line.trim().split(/ +/).slice(2))
    const at = shown.findIndex(([, name]) => name === 'charged')
    const classes = shown[0]!.slice(4, -1)
    const named = shown.slice(1, at).flatMap((cells) => {
      const found = cells.slice(4, -1).flatMap((cell, n) => (cell === '-' || !cell ? [] : [`${classes[n]} ${cell}`]))
      return cells[1] === 'output' ? found : []
    })
    assert.deepEqual(named.sort(), [
      ...[
        'boundary -20',
        'boundary 20',
        'cut_short 50',
        'estimated 5',
        'lost_attempts 10',
        'not_ours 20',
        'returned 20',
      ],
    ])
    assert.deepEqual(shown.slice(at + 1, -2), [
      ['m-large', '0', '0.00012', 'free'],
      ['m-large', '0.00018', '0.00012', 'rate'],
    ])
    assert.deepEqual([code, /, 0 tokens unexplained\n$/.test(stdout)], [0, true], stdout)
  })

const minuteMs = 60_000
const dayMs = 1_440 * minuteMs
const head = 'line_item_usage_start_date,line_item_usage_end_date,line_item_usage_type,line_item_usage_amount'

test('reconcile reads an export of 150,000 lines with refunds, and the ledger from a day before it to a week after', async (t) => {
  const path = createPath(t)
  const startMs = Date.parse('2026-08-01T00:00:00Z')
  const lines = Array.from({ length: 150_000 }, (_, index) => {
    const [from, until] = [index, index + 1].map((at) => new Date(startMs + at * minuteMs).toISOString())
    return `${from},${until},USE1-M-Large-${index % 1_000 === 0 ? 'input-tokens,-1' : 'output-tokens,0'}`
  })
  const endMs = startMs + lines.length * minuteMs
  let nowMs = startMs - 3 * dayMs
  const store = openStore(path, { nowMs: () => nowMs })
  const { id } = store.createAccount('one', 9_000_000n)
  const posted = [startMs - 2 * dayMs, startMs - dayMs / 2, endMs - dayMs, endMs + 6 * dayMs, endMs + 8 * dayMs]
  for (const [index, postedMs] of posted.entries()) {
    nowMs = postedMs
    const createdMs = Math.min(postedMs, endMs - 60 * minuteMs)
    store.postDebits([{ ...createDebitRow(`req_${index}`, id), upstream: 'bedrock', model: 'm-large', createdMs }])
  }
  const file = join(dirname(path), 'cur.csv')
  writeFileSync(file, [head, ...lines, ''].join('\n'))
  const args = ['reconcile', file, '--provider', 'aws', '--store', path]
  const told = await runWarm([...args, '--json'])
  const { ours, negative, unexplained } = JSON.parse(told.stdout)
  const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = usage
  const perDebit = inputTokens + cacheReadTokens + cacheWriteTokens + outputTokens
  // Of three debits that were posted at that time, one is of the day before.
  assert.deepEqual([told.code, ours, negative, unexplained], [1, 3, 150, 2 * perDebit])
  writeFileSync(file, [head, ...lines.slice(0, 1_001), ''].join('\n'))
  assert.match((await runWarm(args)).stdout, /tokens unexplained, 2 negative lines skipped\n$/)
  writeFileSync(file, [head, lines[0], ''].join('\n'))
  const refunds = await runWarm(args)
  assert.equal(refunds.code, 1)
  assert.match(refunds.stderr, /has no row of usage/)
  store.close()
})
