import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { createDebitRow, createPath, usage } from '../store/fixtures.ts'
import { openStore } from '../support/operator.ts'
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
  const { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens, outputTokens } = usage
  const cacheWrites = cacheWriteTokens + cacheWrite1hTokens
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
    writeFileSync(file, JSON.stringify({ data: [bucket] }))
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
  const { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens, outputTokens } = usage
  const perDebit = inputTokens + cacheReadTokens + cacheWriteTokens + cacheWrite1hTokens + outputTokens
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
