import assert from 'node:assert/strict'
import test from 'node:test'
import type { BetaAnalyticsUsageItem } from '@anthropic-ai/sdk/resources/beta/organization/analytics/usage'
import fc from 'fast-check'
import { formatCredits } from '../../src/accounts/credit.ts'
import type { Entry } from '../../src/accounts/entries.ts'
import { exportFormats, exportProviders, type KindCounts, tokenKinds } from '../../src/accounts/reconcile/exports.ts'
import { type DifferenceClass, differenceClasses, reconcile } from '../../src/accounts/reconcile/reconcile.ts'
import { runsUpTo } from '../support/runs.ts'
import { type Counted, hourMs, longWrites, startMs, writers } from '../support/usage-exports.ts'

/* Law 14: an export made from the ledger with each class of difference planted has exactly these, and nothing unexplained. */

const model = 'model-a'

function debit(
  requestId: string,
  createdMs: number,
  tokens: KindCounts,
  { usageSource = 'final', outcome = 'ok', cost }: { usageSource?: string; outcome?: string; cost?: bigint } = {},
): Entry {
  const usage = {
    inputTokens: tokens.input,
    cacheReadTokens: tokens.cache_read,
    cacheWriteTokens: tokens.cache_write,
    cacheWrite1hTokens: longWrites(tokens),
    outputTokens: tokens.output,
  }
  const bill = { requestId, model, upstream: 'up', usage, usageSource, outcome }
  return { kind: 'debit', createdMs, bill, ...(cost !== undefined && { details: { costNanos: cost } }) } as never
}

const counts = fc.record({
  input: fc.integer({ min: 1, max: 9_000 }),
  cache_read: fc.integer({ min: 1, max: 9_000 }),
  cache_write: fc.integer({ min: 1, max: 900 }),
  output: fc.integer({ min: 10, max: 5_000 }),
})

const times = (tokens: KindCounts, factor: number): KindCounts =>
  Object.fromEntries(tokenKinds.map((kind) => [kind, Math.floor(tokens[kind] * factor)])) as KindCounts

const sum = (...all: KindCounts[]): KindCounts =>
  Object.fromEntries(tokenKinds.map((kind) => [kind, all.reduce((total, one) => total + one[kind], 0)])) as KindCounts

for (const provider of exportProviders) {
  const { windowMs, write } = writers[provider]
  const { isWhole, read } = exportFormats[provider]
  const midOf = (window: number) => startMs + (window + 0.5) * windowMs
  const shown = (tokens: KindCounts) =>
    isWhole
      ? {
          input: tokens.input + tokens.cache_read + tokens.cache_write,
          cache_read: 0,
          cache_write: 0,
          output: tokens.output,
        }
      : { ...tokens }

  test(`law 14 each class of difference is found in an export of ${provider}, and one token more is unexplained`, async () => {
    const scene = fc.record({
      many: fc.array(counts, { minLength: 9, maxLength: 9 }),
      cut: fc.integer({ min: 1, max: 8_000 }),
      part: fc.double({ min: 0.01, max: 1, noNaN: true }),
    })
    await fc.assert(
      fc.asyncProperty(scene, fc.nat(3), async ({ many, cut, part }, which) => {
        const [plain, gone, waived, near, base, lost, short, guessed, foreign] = many as [KindCounts, ...KindCounts[]] &
          Record<number, KindCounts>
        const entries: Entry[] = [
          debit('req_0', midOf(0), plain),
          debit('req_1', midOf(1), gone!),
          { kind: 'credit', createdMs: midOf(5), returned: { requestId: 'req_1', model } } as never,
          debit('req_2', midOf(1), waived!, { usageSource: 'waived' }),
          debit('req_3', startMs + 3 * windowMs - 60_000, near!),
          debit('req_4', midOf(2), base!),
          debit('req_5', midOf(3), base!),
          debit('req_6', midOf(4), base!),
          debit('req_7', midOf(5), short!, { usageSource: 'partial', outcome: 'client_abort' }),
          debit('req_8', midOf(6), guessed!, { usageSource: 'estimated' }),
        ]
        // No attempt that lost has more than the one that was billed.
        const attempt = sum({ ...times(lost!, 0), input: base!.input, output: Math.min(base!.output, lost!.output) })
        const real = times(guessed!, 1 + part)
        const rows: Counted[] = [
          { window: 0, model, tokens: plain, requests: 1 },
          { window: 1, model, tokens: sum(gone!, waived!), requests: 2 },
          { window: 2, model, tokens: base!, requests: 1 },
          { window: 3, model, tokens: sum(base!, near!), requests: 2 },
          { window: 4, model, tokens: sum(base!, attempt), requests: 2 },
          { window: 5, model, tokens: { ...short!, output: short!.output + cut }, requests: 1 },
          { window: 6, model, tokens: real, requests: 1 },
          { window: 6, model: 'stranger', tokens: foreign!, requests: 1 },
        ]
        const options = { provider, isOf: (name?: string) => name === 'up', attempts: new Map([['req_6', 1]]) }
        const told = await reconcile(read(write(rows)), entries, options)
        assert.equal(told.unexplained, 0, JSON.stringify(told.rows))
        const found = (name: DifferenceClass) =>
          sum(...told.rows.map(({ kind, classes }) => ({ ...times(plain, 0), [kind]: Math.abs(classes[name] ?? 0) })))
        const none = times(plain, 0)
        const planted: Record<DifferenceClass, KindCounts> = {
          not_ours: shown(foreign!),
          returned: shown(sum(gone!, waived!)),
          // Missing in one window, and more in the other.
          boundary: shown(times(near!, 2)),
          lost_attempts: shown(attempt),
          cut_short: { ...none, output: cut },
          estimated: shown(sum(real, { ...times(guessed!, -1) })),
        }
        for (const name of Object.keys(differenceClasses) as DifferenceClass[])
          assert.deepEqual(found(name), planted[name], name)
        for (const { export: theirs, billed, classes, unexplained } of told.rows)
          assert.equal(theirs - billed, Object.values(classes).reduce((all, one) => all + one, 0) + unexplained)
        const kind = isWhole && which > 0 ? 'output' : tokenKinds[which]!
        const more = rows.map((row) =>
          row.window === 0 ? { ...row, tokens: sum(row.tokens, { ...none, [kind]: 1 }) } : row,
        )
        assert.equal((await reconcile(read(write(more)), entries, options)).unexplained, 1)
        // An answer that was cut short explains output alone.
        const ofInput = rows.map((row) =>
          row.window === 5 ? { ...row, tokens: sum(row.tokens, { ...none, input: 1 }) } : row,
        )
        assert.equal((await reconcile(read(write(ofInput)), entries, options)).unexplained, 1)
      }),
      { numRuns: runsUpTo(60) },
    )
  })

  test(`law 14 a charge of ${provider} that differs from the cost is named free or rate, and only where the tokens agree`, async () => {
    const nanos = fc.bigInt({ min: 1_000n, max: 10n ** 12n })
    await fc.assert(
      fc.asyncProperty(counts, nanos, nanos, async (tokens, cost, more) => {
        const entries = [0, 1, 2, 3, 4].map((window) => debit(`req_${window}`, midOf(window), tokens, { cost }))
        entries.push(debit('req_5', midOf(5), tokens))
        const row = (window: number, charge: bigint) => ({
          window,
          model,
          tokens,
          requests: 1,
          charge: formatCredits(charge),
        })
        const rows: Counted[] = [
          row(0, cost),
          row(1, cost + more),
          row(2, 0n),
          row(3, cost / 2n),
          // More tokens explain why more money was charged.
          { ...row(4, cost + more), requests: 2, tokens: sum(tokens, { ...times(tokens, 0), output: 1 }) },
          row(5, cost),
          { ...row(6, more), model: 'stranger' },
        ]
        const { costs, unexplained } = await reconcile(read(write(rows)), entries, { provider, isOf })
        const at = (window: number) => new Date(startMs + window * windowMs).toISOString().replace('.000', '')
        const told = (window: number, charge: bigint, name: string) => ({
          ...{ from: at(window), until: at(window + 1), model, cost: formatCredits(cost) },
          ...{ charged: formatCredits(charge), class: name },
        })
        assert.deepEqual(costs, [told(1, cost + more, 'rate'), told(2, 0n, 'free'), told(3, cost / 2n, 'rate')])
        const hasRequests = ['openai', 'openrouter'].includes(provider)
        assert.equal(unexplained, hasRequests ? 0 : 1)
      }),
      { numRuns: runsUpTo(40) },
    )
  })

  test(`a file that is not an export of ${provider} is refused with its cure`, () => {
    for (const text of [
      '',
      '{}',
      'a,b\n1,2\n',
      '{"data":[{}]}',
      '{"data":7}',
      '{"data":[{"usage":5}]}',
      '{"data":[{"usage":null}]}',
    ])
      assert.throws(() => read(text), /export|file|page|row|time/i, JSON.stringify(text))
  })
}

test('the model of a line item of OpenAI is the text before the first comma, without spaces around it', () => {
  for (const line of ['model-a, input', 'model-a , input', 'model-a']) {
    const bucket = { start_time: 0, end_time: 3_600, results: [{ amount: { value: 1 }, line_item: line }] }
    assert.equal(exportFormats.openai.read(JSON.stringify({ data: [bucket] }))[0]!.model, 'model-a')
  }
})

test('rows of keys and projects that are not named are not counted as ours', async () => {
  const row = { fromMs: startMs, untilMs: startMs + hourMs, model, requests: 1 }
  const tokens = { input: 5, cache_read: 0, cache_write: 0, output: 7 }
  const rows = [
    { ...row, tokens, owners: ['key_ours'] },
    { ...row, tokens, owners: ['key_theirs', 'project'] },
  ]
  const options = { provider: 'openai' as const, isOf: () => true, owners: new Set(['key_ours']) }
  const told = await reconcile(rows, [debit('req_1', startMs + hourMs / 2, tokens)], options)
  assert.equal(told.unexplained, 0)
  assert.deepEqual(
    told.rows.map(({ classes }) => classes),
    [{ not_ours: 5 }, { not_ours: 7 }],
  )
})

/** A page of the usage and cost analytics, held against the vendor's own types. */
function analyticsPage(apiKeyId: string | null): { data: BetaAnalyticsUsageItem[]; has_more: boolean } {
  const noGroup = {
    ...{ actor: null, actor_type: null, agent_id: null, claude_tag_category: null, claude_tag_user_id: null },
    ...{ context_window: null, deployment_id: null, environment_id: null, inference_geo: null, organization_id: null },
    ...{
      product: null,
      rbac_group_id: null,
      service_tier: null,
      session_id: null,
      slack_channel_id: null,
      speed: null,
    },
    ...{ user_profile_id: null },
  }
  const usage = {
    cache_creation: { ephemeral_1h_input_tokens: 3, ephemeral_5m_input_tokens: 40 },
    ...{ cache_read_input_tokens: 500, uncached_input_tokens: 6_000, output_tokens: 70_000, total_tokens: 76_543 },
    ...{ requests: 2, server_tool_use: { web_search_requests: 9 } },
  }
  const group = { ...noGroup, model: 'model-a-20260930', api_key_id: apiKeyId, workspace_id: 'workspace' }
  const span = { starting_at: '2026-11-02T00:00:00Z', ending_at: '2026-11-02T01:00:00Z' }
  return { data: [{ ...span, group, usage }], has_more: false }
}

test('issue 46.9 the usage and cost analytics of Anthropic are read with key, workspace, requests and all tokens', () => {
  const tokens = { input: 6_000, cache_read: 500, cache_write: 43, output: 70_000 }
  const span = { fromMs: startMs, untilMs: startMs + hourMs, model: 'model-a-20260930' }
  for (const [key, owners] of [
    ['key', ['key', 'workspace']],
    [null, ['workspace']],
  ] as const)
    assert.deepEqual(exportFormats.anthropic.read(JSON.stringify(analyticsPage(key))), [
      { ...span, owners, tokens, requests: 2 },
    ])
  const [row] = analyticsPage('key').data
  const costs = { data: [{ ...row, usage: undefined, cost: { amount: '12.5', currency: 'USD', list_amount: '14' } }] }
  const [charge] = exportFormats.anthropic.read(JSON.stringify(costs))
  assert.deepEqual([charge!.model, charge!.chargeNanos, charge!.isCharge], ['model-a-20260930', 125_000_000n, true])
  const page = analyticsPage(null)
  const uncounted = { ...page, data: page.data.map((row) => ({ ...row, usage: { ...row.usage, requests: null } })) }
  assert.equal(exportFormats.anthropic.read(JSON.stringify(uncounted))[0]!.requests, undefined)
  const unnamed = { ...page, data: page.data.map((row) => ({ ...row, group: { ...row.group, model: null } })) }
  assert.throws(() => exportFormats.anthropic.read(JSON.stringify(unnamed)), /grouped by model/)
})

const small = { input: 5, cache_read: 0, cache_write: 0, output: 7 }

/** A row of the export in an hour after its start. */
const hourly = (hour: number, name: string, owners: readonly string[] = []) => ({
  fromMs: startMs + hour * hourMs,
  untilMs: startMs + (hour + 1) * hourMs,
  model: name,
  owners,
  tokens: small,
  requests: undefined,
})

const isOf = () => true

for (const [title, rows, options, unexplained, notOurs] of [
  ['a model of a named owner', [hourly(0, 'strange', ['ours'])], { owners: new Set(['ours']) }, 12, 0],
  ['a model of an owner that is not named', [hourly(0, 'strange', ['theirs'])], { owners: new Set(['ours']) }, 0, 12],
  ['a model, if no owner is named', [hourly(0, 'strange')], {}, 0, 12],
  ['a model that is named as ours', [hourly(0, 'Strange-2026-01-01')], { names: new Map([['strange', 'b']]) }, 12, 0],
] as const)
  test(`law 14 tokens of ${title}: ${unexplained} unexplained if the ledger has nothing`, async () => {
    const entries = [debit('req_1', startMs + hourMs / 2, small)]
    const told = await reconcile([hourly(0, model, ['ours']), ...rows], entries, {
      provider: 'openai',
      isOf,
      ...options,
    })
    const foreign = told.rows.reduce((all, { classes }) => all + (classes.not_ours ?? 0), 0)
    assert.deepEqual([told.unexplained, foreign, told.matched], [unexplained, notOurs, 1])
  })

test('law 14 a debit at any moment of an export is unexplained if the export has nothing of its model or window', async () => {
  // The export has hours 0, 1, 4 and 5. Only at its own edges may an answer be counted outside of it.
  const rows = [0, 1, 4, 5].map((hour) => hourly(hour, 'strange'))
  const edgeMs = 15 * 60_000
  const moments = fc.integer({ min: startMs + edgeMs + 1, max: startMs + 6 * hourMs - edgeMs - 1 })
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(moments, { minLength: 1, maxLength: 9 }), counts, async (at, tokens) => {
      const entries = at.map((ms, index) => debit(`req_${index}`, ms, tokens))
      const told = await reconcile(rows, entries, { provider: 'anthropic', isOf })
      assert.equal(told.unexplained, at.length * tokenKinds.reduce((all, kind) => all + tokens[kind], 0))
      assert.deepEqual([told.matched, told.models], [0, [model]])
    }),
  )
})

test('law 14 a debit beside an export that has nothing of its model makes no difference', async () => {
  for (const ms of [startMs - 1, startMs + hourMs + 1]) {
    const told = await reconcile([hourly(0, 'strange')], [debit('req_1', ms, small)], { provider: 'anthropic', isOf })
    assert.deepEqual([told.unexplained, told.ours, told.matched], [0, 1, 0])
  }
})

test('model names match in any case, with or without owner, and without a day unless the day is named', async () => {
  for (const [theirs, ours] of [
    ['Claude4.5Sonnet', 'claude4.5sonnet'],
    ['someone/Large-2026-01-01', 'large'],
    ['Large-2026-01-01', 'LARGE-2026-01-01'],
  ] as const) {
    const options = { provider: 'aws' as const, isOf, names: new Map([[ours, model]]) }
    const told = await reconcile([hourly(0, theirs)], [debit('req_1', startMs + hourMs / 2, small)], options)
    assert.deepEqual([told.rows, told.unexplained, told.matched], [[], 0, 1], theirs)
  }
})

test('an export and a ledger of many windows, of one model or one window, are compared in full', async () => {
  const minuteMs = 60_000
  const days = 30
  const at = (ms: number, tokens: KindCounts) => ({ fromMs: ms, tokens, model, owners: [], requests: undefined })
  // Each use is counted in the minute after its own, as with a provider that counts ends of answers.
  const minutes = Array.from({ length: 1_440 * days }, (_, index) => {
    const row = at(startMs + index * minuteMs, index % 2 === 0 ? times(small, 0) : small)
    return { ...row, untilMs: row.fromMs + minuteMs }
  })
  const uses = (stepMs: number) =>
    Array.from({ length: 720 * days }, (_, index) => debit(`req_${index}`, startMs + index * stepMs, small))
  const wide = uses(2 * minuteMs)
  const options = { provider: 'anthropic' as const, isOf }
  const moved = await reconcile(minutes, wide, options)
  assert.deepEqual([moved.unexplained, moved.compared, moved.ours], [0, 4 * minutes.length, wide.length])
  assert.ok(moved.rows.every(({ classes }) => Object.keys(classes).join() === 'boundary'))
  // One window, whose answers all are near its edge, and most of which are missing.
  const narrow = Array.from({ length: 7 }, () => uses(10)).flat()
  const named = narrow.map((entry, index) => ({ ...entry, bill: { ...entry.bill!, requestId: `req_${index}` } }))
  const whole = await reconcile([{ ...at(startMs, small), untilMs: startMs + 24 * hourMs }], named, options)
  assert.deepEqual([whole.unexplained, whole.ours], [0, named.length])
  assert.equal(whole.rows.find(({ kind }) => kind === 'output')?.classes.boundary, 7 - 7 * named.length)
})

test('law 14 a negative line of any export is skipped and counted, and changes nothing else', async () => {
  const entries = [debit('req_1', startMs + hourMs / 2, small)]
  for (const provider of exportProviders) {
    const [{ windowMs, write }, { read }] = [writers[provider], exportFormats[provider]]
    const right: Counted = { window: 0, model, tokens: small, requests: 1 }
    const refund = { window: 40, model, tokens: { ...times(small, 0), output: -7_000 }, requests: 1 }
    const middle = [debit('req_1', startMs + windowMs / 2, small)]
    const told = await reconcile(read(write([refund, right, refund])), middle, { provider, isOf })
    assert.deepEqual(
      [told.rows, told.unexplained, told.negative, told.matched],
      [[], 0, 2, provider === 'aws' ? 10 : 1],
    )
  }
  const taken = { ...hourly(0, model), requests: -1 }
  const told = await reconcile([hourly(0, model), taken], entries, { provider: 'openai', isOf })
  assert.deepEqual([told.unexplained, told.negative], [0, 1])
})
