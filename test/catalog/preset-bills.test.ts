import assert from 'node:assert/strict'
import test from 'node:test'
import { formatCredits } from '../../src/accounts/credit.ts'
import { priceNanos, type Tier } from '../../src/catalog/model.ts'
import { builtInPresets, presets } from '../../src/catalog/presets.ts'
import { setAt } from '../../src/catalog/price-list.ts'
import { listFrom } from '../support/price-lists.ts'

/* Bills of presets, computed by hand from the pages that they name; and the schedules of presets at every minute of two years. */

const calendars = `\n  ${Object.entries(builtInPresets.calendars)
  .map(([name, calendar]) => `${name}: ${JSON.stringify(calendar)}`)
  .join('\n  ')}`

function listOf(provider: string, id: string) {
  const model = presets[provider]!.models.find((one) => one.id === id)
  assert.ok(model?.prices, `${provider} ${id}`)
  return listFrom(JSON.stringify(model.prices.texts), calendars)
}

type Tokens = { fresh?: number; read?: number; write?: number; write1h?: number; output?: number }
type Row = [id: string, facts: { at?: string; tier?: Tier; geo?: string }, tokens: Tokens, credits: string]

const million = 1_000_000
const all: Tokens = { fresh: million, read: million, write: million, write1h: million, output: million }

/** Per provider: the page and the day of its figures, and the bills. Each sum is written beside its row. */
const golden: Record<string, Row[]> = {
  // developers.openai.com/api/docs/models/gpt-6-luna, 23 September 2026: 0.1, read 0.01, write 0.125, 12 h 0.25, output 0.5; above
  // 272,000 tokens of input 0.2, 0.02, 0.25, 0.5, 0.75; flex half, fast twice.
  openai: [
    ['gpt-6-luna', {}, { fresh: 272_000, output: 1_000 }, '0.0277'],
    ['gpt-6-luna', {}, { fresh: 272_001, output: 1_000 }, '0.0551502'],
    ['gpt-6-luna', {}, { write: 100_000 }, '0.0125'],
    ['gpt-6-luna', {}, { write1h: 100_000 }, '0.025'],
    ['gpt-6-luna', { tier: 'flex' }, { fresh: 100_000, write1h: 100_000, output: 1_000 }, '0.01775'],
    ['gpt-6-luna', { tier: 'priority' }, { fresh: 100_000, write1h: 100_000, output: 1_000 }, '0.071'],
    // 200,000 × 0.2 + 100,000 × 0.5 + 1,000 × 0.75 = 0.09075, and twice that.
    ['gpt-6-luna', { tier: 'priority' }, { fresh: 200_000, write1h: 100_000, output: 1_000 }, '0.1815'],
  ],
  // platform.claude.com/docs/en/about-claude/pricing, 24 October 2026: 4, read 0.2, write 5, 1 h 8, output 20; fast 2, us 1.1.
  anthropic: [
    ['claude-opus-5-5', {}, all, '37.2'],
    ['claude-opus-5-5', { tier: 'priority' }, all, '74.4'],
    ['claude-opus-5-5', { geo: 'us' }, all, '40.92'],
    ['claude-opus-5-5', { tier: 'priority', geo: 'us' }, all, '81.84'],
    ['claude-opus-5-5', { tier: 'priority', geo: 'us' }, { write1h: 1_000 }, '0.0176'],
    ['claude-opus-5-5', { geo: 'eu' }, all, '37.2'],
    // 100,001 × 0.5 × 1.1.
    ['claude-haiku-5-5', { geo: 'us' }, { fresh: 100_001 }, '0.05500055'],
  ],
  // ai.google.dev/gemini-api/docs/pricing, 7 October 2026: 0.75, read 0.075, output 3.75 until 31 December 2026, then twice; flex
  // half, priority 1.8.
  gemini: [
    [
      'gemini-3.8-flash',
      { at: '2027-01-01T07:59:59.999Z' },
      { fresh: million, read: million, output: million },
      '4.575',
    ],
    ['gemini-3.8-flash', { at: '2027-01-01T08:00:00Z' }, { fresh: million, read: million, output: million }, '9.15'],
    [
      'gemini-3.8-flash',
      { at: '2026-12-01T00:00:00Z', tier: 'flex' },
      { fresh: million, read: million, output: million },
      '2.2875',
    ],
    ['gemini-3.8-flash', { at: '2027-02-01T00:00:00Z', tier: 'flex' }, { fresh: million, output: million }, '4.5'],
    ['gemini-3.8-flash', { at: '2027-02-01T00:00:00Z', tier: 'priority' }, { fresh: million, output: million }, '16.2'],
    ['gemini-3.8-flash', { at: '2026-12-01T00:00:00Z', tier: 'ultrafast' }, { fresh: million, output: million }, '4.5'],
    ['gemini-4-argon', { at: '2026-12-01T07:59:59Z' }, { fresh: million, read: million, output: million }, '12.1'],
    ['gemini-4-argon', { at: '2026-12-01T08:00:00Z' }, { fresh: million, read: million, output: million }, '24.2'],
  ],
  // The offer file of Amazon Bedrock for us-east-1, as read on 20 November 2026: 0.15 and 0.6; flex half, priority 1.75.
  bedrock: [
    ['openai.gpt-oss-120b', {}, { fresh: million, output: million }, '0.75'],
    ['openai.gpt-oss-120b', { tier: 'flex' }, { fresh: million, output: million }, '0.375'],
    ['openai.gpt-oss-120b', { tier: 'priority' }, { fresh: million, output: million }, '1.3125'],
  ],
  // LiteLLM 1.110.2 of 20 November 2026, for the global profile: 0.1 and 0.5 of output; above 100,000 tokens of input 0.5 and 2.5.
  'bedrock-claude': [
    ['global.anthropic.claude-haiku-5-5', {}, { fresh: 100_000, output: 1_000 }, '0.0105'],
    ['global.anthropic.claude-haiku-5-5', {}, { fresh: 100_001, output: 1_000 }, '0.0525005'],
    ['global.anthropic.claude-opus-5-5', {}, all, '37.2'],
  ],
  // The same for us-east-1: 4.4, read 0.22, write 5.5, 1 h 8.8, output 22.
  'bedrock-mantle-claude': [['anthropic.claude-opus-5-5', {}, all, '40.92']],
  'claude-aws': [['claude-opus-5-5', { geo: 'us' }, all, '40.92']],
  // The same for Azure: 2, output 10; above 272,000 4 and 15; flex half, priority twice.
  'azure-openai': [
    ['gpt-6-sol', {}, { fresh: 272_001, output: 1_000 }, '1.103004'],
    ['gpt-6-sol', { tier: 'flex' }, { fresh: 272_000, output: 1_000 }, '0.277'],
    ['gpt-6-sol', { tier: 'priority' }, { fresh: 272_001, output: 1_000 }, '2.206008'],
  ],
  // api-docs.deepseek.com/quick_start/pricing, 4 October 2026: 1.32, read 0.044, output 3.96 at peak, half of it at other hours.
  deepseek: [
    [
      'deepseek-v4-pro',
      { at: '2026-11-27T10:00:00+08:00' },
      { fresh: million, read: million, output: million },
      '5.324',
    ],
    [
      'deepseek-v4-pro',
      { at: '2026-11-27T12:00:00+08:00' },
      { fresh: million, read: million, output: million },
      '2.662',
    ],
    ['deepseek-flash', { at: '2026-11-28T10:00:00+08:00' }, { fresh: million, output: million }, '0.75'],
  ],
}

for (const [provider, rows] of Object.entries(golden))
  test(`C11 Y17 bills of the preset ${provider} equal those of its page, to the nano-credit`, () => {
    for (const [id, { at = '2026-11-27T00:00:00Z', ...facts }, tokens, credits] of rows) {
      const { fresh = 0, read = 0, write = 0, write1h = 0, output = 0 } = tokens
      const usage = {
        ...{
          inputTokens: fresh,
          cacheReadTokens: read,
          cacheWriteTokens: write + write1h,
          cacheWrite1hTokens: write1h,
        },
        ...{ outputTokens: output, reasoningTokens: 0, estimated: false },
      }
      const { prices } = setAt(listOf(provider, id), { at: Date.parse(at), ...facts })
      assert.equal(formatCredits(priceNanos(prices, usage)), credits, `${id} ${at} ${JSON.stringify(facts)}`)
    }
  })

test('C11 presets have at least 60 models of 12 providers with a day and a source', () => {
  const priced = Object.values(presets).filter(({ models }) => models.some(({ prices }) => prices))
  const models = priced.flatMap(({ models }) => models.filter(({ prices }) => prices))
  assert.ok(priced.length >= 12 && models.length >= 60, `${models.length} models of ${priced.length} providers`)
})

/** The sentences of the providers whose presets have bands. */
const sentences: Record<string, (ms: number) => string | null> = {
  // Monday to Friday 09:00 to 12:00 and 14:00 to 18:00 in Beijing, except on public holidays of China.
  deepseek(ms) {
    const beijing = new Date(ms + 8 * 3_600_000)
    const [day, hour, date] = [beijing.getUTCDay(), beijing.getUTCHours(), beijing.toISOString().slice(0, 10)]
    const isPeak = day >= 1 && day <= 5 && ((hour >= 9 && hour < 12) || (hour >= 14 && hour < 18))
    return isPeak && !holidays.has(date) ? 'peak' : null
  },
}

/** gov.cn 202511/content_7047090. The list of 2027 is not out. */
const holidays = new Set(
  [
    ...['01-01', '01-02', '01-03', '02-15', '02-16', '02-17', '02-18', '02-19', '02-20', '02-21', '02-22', '02-23'],
    ...['04-04', '04-05', '04-06', '05-01', '05-02', '05-03', '05-04', '05-05', '06-19', '06-20', '06-21'],
    ...['09-25', '09-26', '09-27', '10-01', '10-02', '10-03', '10-04', '10-05', '10-06', '10-07'],
  ].map((day) => `2026-${day}`),
)

test('C11 law 1: presets with bands follow the provider’s sentence at every minute of 2026 and 2027', () => {
  for (const [provider, { models }] of Object.entries(presets))
    for (const { id, prices } of models) {
      if (!JSON.stringify(prices ?? null).includes('"bands"')) continue
      const sentence = sentences[provider]
      assert.ok(sentence, `the sentence of ${provider} is missing here`)
      const list = listOf(provider, id)
      for (let at = Date.UTC(2026, 0, 1); at < Date.UTC(2028, 0, 1); at += 60_000)
        if (setAt(list, { at }).band !== sentence(at)) assert.fail(`${id} at ${new Date(at).toISOString()}`)
    }
})
