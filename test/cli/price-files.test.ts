import assert from 'node:assert/strict'
import test from 'node:test'
import { readPriceFile, toDecimal } from '../../src/cli/catalog/price-files.ts'
import { diffLines } from '../../src/cli/diff.ts'

test('C1 a price per token is converted to one per million without rounding in between; excess digits are rounded up', () => {
  const told: [number, number, string][] = [
    [3e-6, 6, '3'],
    [1.25e-7, 6, '0.125'],
    [0.00000006, 6, '0.06'],
    [1e-5, 6, '10'],
    [0.1 + 0.2, 0, '0.300000001'],
    [1.6666666667e-8, 6, '0.016666667'],
    [2.5, -3, '0.0025'],
    [1234.5, 0, '1234.5'],
    [1e21, 0, '1000000000000000000000'],
  ]
  for (const [value, shift, text] of told) assert.equal(toDecimal(value, shift), text, `${value}`)
})

/** In the shape of LiteLLM's file, 1.109. */
const litellm = {
  sample_spec: { litellm_provider: 'one of …', mode: 'one of: chat, embedding', input_cost_per_token: 0 },
  'small-1': {
    litellm_provider: 'anthropic',
    mode: 'chat',
    input_cost_per_token: 1e-7,
    output_cost_per_token: 5e-7,
    cache_read_input_token_cost: 1e-8,
    cache_creation_input_token_cost: 1.25e-7,
    cache_creation_input_token_cost_above_1hr: 2e-7,
    cache_creation_input_token_cost_above_1hr_above_100k_tokens: 1e-6,
    input_cost_per_token_above_100k_tokens: 5e-7,
    input_cost_per_token_above_100k_tokens_batches: 2.5e-7,
    output_cost_per_token_above_100k_tokens: 2.5e-6,
    cache_read_input_token_cost_above_100k_tokens: 5e-8,
    max_input_tokens: 1_000_000,
    max_output_tokens: 128_000,
    search_context_cost_per_query: { search_context_size_low: 0.01, search_context_size_high: 0.01 },
    supports_reasoning: true,
    supports_sampling_params: false,
  },
  'far/plain': {
    litellm_provider: 'far',
    mode: 'chat',
    input_cost_per_token: 3e-6,
    output_cost_per_token: 1.5e-5,
    cache_creation_input_token_cost: 0,
    file_search_cost_per_1k_calls: 2.5,
    search_context_cost_per_query: { search_context_size_low: 0.01, search_context_size_high: 0.02 },
    max_output_tokens: 'unknown',
  },
  'far/free': { litellm_provider: 'far', mode: 'chat', input_cost_per_token: 0, output_cost_per_token: 0 },
  'far/embed': { litellm_provider: 'far', mode: 'embedding', input_cost_per_token: 1e-6 },
}

test("LiteLLM's price file: steps in the names of keys are read, batches left out, and empty values are not prices", () => {
  const [small, plain, free, ...rest] = readPriceFile(litellm)!
  assert.deepEqual(small, {
    id: 'small-1',
    provider: 'anthropic',
    maxOutputTokens: 128_000,
    contextWindow: 1_000_000,
    prices: {
      input: '0.1',
      output: '0.5',
      cache_read: '0.01',
      cache_write: '0.125',
      cache_write_1h: '0.2',
      steps: [
        { above: 100_000, input: '0.5', output: '2.5', cache_read: '0.05', cache_write: '0.125', cache_write_1h: '1' },
      ],
      calls: { web_search: '0.01' },
    },
    gaps: ['cache_write above 100000 (the price below is taken)'],
    reasons: true,
    samples: false,
    leftOut: ['input_cost_per_token_above_100k_tokens_batches'],
  })
  assert.deepEqual([plain!.id, plain!.maxOutputTokens, plain!.contextWindow], ['plain', undefined, undefined])
  assert.deepEqual(plain!.prices, { input: '3', output: '15', calls: { file_search: '0.0025' } })
  assert.deepEqual([free!.prices, free!.gaps], [undefined, ['a price']])
  assert.deepEqual(rest, [])
})

test("models.dev's price file: tiers take precedence over the price above 200k", () => {
  const cost = { input: 2, output: 10, cache_read: 0.1, context_over_200k: { input: 9, output: 9 } }
  const tier = { input: 4, output: 15, cache_read: 0.2, tier: { type: 'context', size: 272_000 } }
  const model = (more: object) => ({ reasoning: true, limit: { context: 1000, output: 100 }, cost, ...more })
  const [tiered, long, bare] = readPriceFile({
    openai: {
      models: { tiered: model({ cost: { ...cost, tiers: [tier] } }), long: model({}), bare: { temperature: false } },
    },
  })!
  assert.deepEqual(tiered!.prices!.steps, [{ above: 272_000, input: '4', output: '15', cache_read: '0.2' }])
  assert.deepEqual(long!.prices!.steps, [{ above: 200_000, input: '9', output: '9', cache_read: '0.1' }])
  assert.deepEqual([long!.contextWindow, long!.maxOutputTokens, long!.reasons, long!.samples], [1000, 100, true, true])
  assert.deepEqual([bare!.prices, bare!.samples], [undefined, false])
})

test('money.md 1 c every price that is not imported is named, and nothing else', () => {
  const rates = { input_cost_per_token: 1e-6, output_cost_per_token: 5e-6, cache_read_input_token_cost: 1e-7 }
  const left = {
    off_peak_pricing: { timezone: 'UTC', windows: [{ start: '16:30', end: '00:30' }], input_cost_per_token: 5e-7 },
    input_cost_per_token_flex: 5e-7,
    output_cost_per_token_priority: 1e-5,
    input_cost_per_token_ultrafast: 6e-6,
    output_cost_per_token_batches: 2e-6,
    input_cost_per_token_above_272k_tokens_priority: 4e-6,
    regional_processing_uplift_multiplier_eu: 1.1,
    regional_endpoint_uplift_multiplier: 1.1,
    provider_specific_entry: { us: 1.1, fast: 2, eu: 1.2 },
    tiered_pricing: [{ range: [0, 1] }],
    input_cost_per_audio_token: 1e-5,
    code_interpreter_cost_per_session: 0.03,
    search_context_cost_per_query: { search_context_size_low: 0.01, search_context_size_high: 0.02 },
  }
  const taken = {
    ...rates,
    cache_creation_input_token_cost: 1.25e-6,
    cache_creation_input_token_cost_above_12hr: 2.5e-6,
    input_cost_per_token_above_272k_tokens: 2e-6,
    file_search_cost_per_1k_calls: 2.5,
    supports_service_tier: true,
    output_cost_per_image: 0,
    supported_regions: ['global'],
    max_input_tokens: 9_000,
    source: 'https://prices.example',
    'bad\u001b[2J_cost': 1,
  }
  const [listed] = readPriceFile({ m: { litellm_provider: 'openai', mode: 'responses', ...taken, ...left } })!
  assert.deepEqual(listed!.leftOut, Object.keys(left))
  assert.deepEqual([listed!.prices!.cache_write, listed!.prices!.cache_write_12h], ['1.25', '2.5'])

  const cost = { input: 1, output: 2, cache_write_12h: 2.5, reasoning: 3, input_audio: 4, output_audio: 0 }
  const fast = { input: 9, output: 9, tier: { type: 'speed', size: 1 } }
  const long = { input: 2, output: 4, tier: { type: 'context', size: 9_000 } }
  const modes = { modes: { fast: { cost: { input: 6 } } } }
  const models = { m: { cost: { ...cost, tiers: [long, fast] }, experimental: modes, off_peak_pricing: { input: 1 } } }
  const [dev] = readPriceFile({ openai: { models } })!
  assert.deepEqual(dev!.leftOut, [
    'cost.reasoning',
    'cost.input_audio',
    'cost.tiers',
    'off_peak_pricing',
    'experimental',
  ])
  assert.deepEqual(
    dev!.prices!.steps?.map(({ above }) => above),
    [9_000],
  )
})

test('money.md 1 c tiers, speeds, geographies and hours are imported as factors if these are exact, else written out', () => {
  const rates = { input_cost_per_token: 1e-6, output_cost_per_token: 5e-6, cache_read_input_token_cost: 1e-7 }
  const step = { input_cost_per_token_above_200k_tokens: 2e-6, output_cost_per_token_above_200k_tokens: 7.5e-6 }
  const of = (more: object) => readPriceFile({ m: { litellm_provider: 'p', mode: 'chat', ...rates, ...more } })![0]!
  const flex = {
    input_cost_per_token_flex: 5e-7,
    output_cost_per_token_flex: 2.5e-6,
    cache_read_input_token_cost_flex: 5e-8,
  }
  const whole = of(flex)
  assert.deepEqual([whole.prices!.tiers, whole.gaps, whole.leftOut], [{ flex: '0.5' }, [], []])
  const stepped = of({
    ...{ ...step, ...flex, cache_read_input_token_cost_above_200k_tokens: 2e-7 },
    ...{ input_cost_per_token_above_200k_tokens_flex: 1e-6, output_cost_per_token_above_200k_tokens_flex: 3.75e-6 },
  })
  assert.deepEqual([stepped.prices!.tiers, stepped.leftOut], [{ flex: '0.5' }, []])
  assert.deepEqual(stepped.gaps, ['all prices of flex (its factor is taken)'])
  const uneven = of({ ...flex, output_cost_per_token_flex: 3e-6, input_cost_per_token_priority: 2e-6 })
  assert.deepEqual(uneven.prices!.tiers, { flex: { input: '0.5', output: '3', cache_read: '0.05' } })
  assert.deepEqual(uneven.leftOut, ['input_cost_per_token_priority'])
  const fastest = of({ provider_specific_entry: { us: 1.1, fast: 2 } })
  assert.deepEqual(
    [fastest.prices!.tiers, fastest.prices!.geos, fastest.leftOut],
    [{ priority: '2' }, { us: '1.1' }, []],
  )
  const windows = [
    { hours_utc: ['00:00-01:00', '10:00-00:00'], weekdays: [1, 2, 3, 4, 5] },
    { hours_utc: '00:00-00:00', weekdays: [6, 7] },
  ]
  const half = { input_cost_per_token: 5e-7, output_cost_per_token: 2.5e-6, cache_read_input_token_cost: 5e-8 }
  const cheap = of({ off_peak_pricing: { ...half, windows } })
  assert.deepEqual(cheap.prices!.bands, [
    {
      name: 'off_peak',
      zone: 'UTC',
      days: ['mon', 'tue', 'wed', 'thu', 'fri'],
      hours: ['00:00-01:00', '10:00-24:00'],
      times: '0.5',
    },
    { name: 'off_peak_2', zone: 'UTC', days: ['sat', 'sun'], times: '0.5' },
  ])
  assert.match(cheap.gaps.join(), /holidays, and the zone of its hours/)
  for (const odd of [
    [{ hours_utc: '9-10' }],
    [{ hours_utc: '09:00-10:00', weekdays: [8] }],
    [{ hours_utc: '09:00-10:00', months: [1] }],
    'x',
  ])
    assert.deepEqual(of({ off_peak_pricing: { ...half, windows: odd } }).leftOut, ['off_peak_pricing'])
  const modes = { experimental: { modes: { fast: { cost: { input: 2, output: 4 } } } } }
  const [dev] = readPriceFile({ openai: { models: { m: { cost: { input: 1, output: 2 }, ...modes } } } })!
  assert.deepEqual([dev!.prices!.tiers, dev!.leftOut], [{ priority: '2' }, []])
})

test('a file of another kind is rejected', () => {
  for (const value of [[], {}, 'x', { a: { b: 1 } }]) assert.equal(readPriceFile(value), undefined)
})

test('a diff lists the differing lines in the order of the new text, and no others', () => {
  assert.deepEqual(diffLines('', 'a\nb\n'), ['+ a', '+ b'])
  assert.deepEqual(diffLines('a\nb\nc\nd\n', 'a\nB\nc\nx\nd\n'), ['- b', '+ B', '+ x'])
  assert.deepEqual(diffLines('a\n', 'a\n'), [])
})

test('BRK-6 a model with a line end or another invisible character in a name is left out of a price file', () => {
  const entry = { mode: 'chat', input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 }
  for (const bad of [
    'a\n- { id: b }',
    'a\r',
    'a\u2028b',
    'a\u2029',
    'a\u0085b',
    'a\u001b[2J',
    'a\u202eb',
    '',
    'a'.repeat(257),
  ]) {
    const file = {
      [bad]: { ...entry, litellm_provider: 'far' },
      x: { ...entry, litellm_provider: bad },
      'far/y': { ...entry, litellm_provider: 'far' },
    }
    assert.deepEqual(
      readPriceFile(file)!.map(({ id }) => id),
      ['y'],
    )
    const dev = { [bad]: { models: { x: {} } }, far: { models: { [bad]: {}, y: {} } } }
    assert.deepEqual(
      readPriceFile(dev)!.map(({ id }) => id),
      ['y'],
    )
  }
})
