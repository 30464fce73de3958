import assert from 'node:assert/strict'
import test from 'node:test'
import { mergeUsage } from '../../src/inference/usage.ts'
import { decodeUsage as chat } from '../../src/wires/chat/usage.ts'
import { decodeUsage as messages } from '../../src/wires/messages/usage.ts'
import { decodeUsage as responses } from '../../src/wires/responses/usage.ts'

test('C6 a count that is negative, fractional, a word or absurd is ignored and flagged', () => {
  for (const bad of [-1, 1.5, '9', 2 ** 31 + 1, Number.NaN, {}]) {
    assert.deepEqual(chat({ prompt_tokens: 9, completion_tokens: bad }, 'none'), {
      inputTokens: 9,
      flags: ['usage_invalid'],
    })
    assert.deepEqual(messages({ input_tokens: 9, output_tokens: bad }), { inputTokens: 9, flags: ['usage_invalid'] })
    assert.deepEqual(responses({ input_tokens: 9, output_tokens: bad }, 'none'), {
      inputTokens: 9,
      flags: ['usage_invalid'],
    })
  }
})

test('C6 a count of cached tokens above that of all input is clamped and flagged', () => {
  assert.deepEqual(
    chat(
      { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 5 } },
      'none',
    ),
    {
      inputTokens: 0,
      cacheReadTokens: 9,
      cacheWriteTokens: 0,
      outputTokens: 1,
      flags: ['cached_clamped'],
    },
  )
})

function reasoned(prompt: number, completion: number, total: number, reasoning: number) {
  const completion_tokens_details = { reasoning_tokens: reasoning }
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total, completion_tokens_details }
}

test('C6 if there is a total, the output is the completion or the rest of the total, whichever is larger', () => {
  const grok = reasoned(307, 26, 560, 227)
  assert.equal(chat(grok, 'none').outputTokens, 253)
  assert.equal(chat(grok, 'excl_reasoning').outputTokens, 253)
  assert.equal(chat({ prompt_tokens: 9, completion_tokens: 0, total_tokens: 20 }, 'none').outputTokens, 11)
  assert.equal(chat({ prompt_tokens: 9, completion_tokens: 5, total_tokens: 0 }, 'none').outputTokens, 5)
  assert.equal(responses({ input_tokens: 9, output_tokens: 1, total_tokens: 20 }, 'none').outputTokens, 11)
})

test('C6 a completion that the total includes completely is not increased', () => {
  assert.equal(chat(reasoned(100, 250, 350, 200), 'excl_reasoning').outputTokens, 250)
  assert.equal(chat(reasoned(100, 64, 164, 200), 'none').outputTokens, 64)
})

test('C1 BUG-14 cache writes are read under every name that servers use, on both wires with inclusive counts', () => {
  const names = ['cache_write_tokens', 'cache_creation_tokens', 'cache_creation_input_tokens', 'cached_creation_tokens']
  const counts = { inputTokens: 1_000, cacheReadTokens: 1_000, cacheWriteTokens: 8_000, outputTokens: 5 }
  for (const name of names)
    for (const others of [undefined, null, 0]) {
      const rest = others === undefined ? {} : Object.fromEntries(names.map((one) => [one, others]))
      const details = { cached_tokens: 1_000, ...rest, [name]: 8_000 }
      const reports = [
        chat({ prompt_tokens: 10_000, completion_tokens: 5, prompt_tokens_details: details }, 'none'),
        responses({ input_tokens: 10_000, output_tokens: 5, input_tokens_details: details }, 'none'),
      ]
      for (const report of reports) assert.deepEqual(report, counts, name)
    }
  const zeros = { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 0 } }
  assert.equal(chat({ ...zeros, prompt_cache_hit_tokens: 6 }, 'none').cacheReadTokens, 6)
  assert.equal(chat(zeros, 'none').cacheReadTokens, 0)
})

test('C6 cached tokens beside the prompt are read, and the total shows whether the prompt includes them', () => {
  const counts = { inputTokens: 100, cacheReadTokens: 9_000, cacheWriteTokens: 500, outputTokens: 50 }
  const beside = { cache_read_input_tokens: 9_000, cache_creation_input_tokens: 500 }
  // Portkey leaves them out of the prompt, LiteLLM and Vercel do not.
  const apart = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 9_650 }
  const within = { prompt_tokens: 9_600, completion_tokens: 50, total_tokens: 9_650 }
  assert.deepEqual(chat({ ...apart, ...beside }, 'none'), counts)
  assert.deepEqual(chat({ ...within, ...beside }, 'none'), counts)
  assert.deepEqual(chat({ ...within, prompt_tokens_details: { cached_tokens: 9_000 }, ...beside }, 'none'), counts)
  const details = { input_tokens_details: { cached_tokens: 9_000, cache_write_tokens: 500 } }
  const own = { input_tokens: 100, output_tokens: 50, total_tokens: 9_650 }
  for (const more of [details, beside]) assert.deepEqual(responses({ ...own, ...more }, 'none'), counts)
  // Reasoning that the completion leaves out may be as large as the cached tokens.
  const grok = { ...reasoned(307, 26, 560, 227), cached_tokens: 227 }
  assert.deepEqual(chat(grok, 'none'), {
    inputTokens: 80,
    cacheReadTokens: 227,
    outputTokens: 253,
    reasoningTokens: 227,
  })
})

test('C1 money.md 1 a cache writes are read by their lifetime, under every name and on both wires with inclusive counts', () => {
  const lifetimes = [
    { cache_write_tokens_details: { ttl_30m_tokens: 200, ttl_12h_tokens: 800 } },
    { cache_creation_token_details: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 800 } },
    { cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 800 } },
  ]
  const counts = { inputTokens: 900, cacheReadTokens: 100, cacheWriteTokens: 1_000, outputTokens: 5 }
  for (const lifetime of lifetimes) {
    for (const written of [{ cache_write_tokens: 1_000 }, { cache_write_tokens: 0 }, {}]) {
      const details = { cached_tokens: 100, ...written, ...lifetime }
      const reports = [
        chat({ prompt_tokens: 2_000, completion_tokens: 5, prompt_tokens_details: details }, 'none'),
        responses({ input_tokens: 2_000, output_tokens: 5, input_tokens_details: details }, 'none'),
      ]
      for (const report of reports) assert.deepEqual(report, { ...counts, cacheWrite1hTokens: 800 })
    }
  }
  // new-api counts them in the usage itself, and writes zeros for every model.
  const ofNewApi = (brief: number, long: number) => ({
    claude_cache_creation_5_m_tokens: brief,
    claude_cache_creation_1_h_tokens: long,
  })
  for (const written of [{ cached_creation_tokens: 1_000 }, {}]) {
    const usage = { prompt_tokens: 2_000, completion_tokens: 5, ...ofNewApi(200, 800) }
    const report = chat({ ...usage, prompt_tokens_details: { cached_tokens: 100, ...written } }, 'none')
    assert.deepEqual(report, { ...counts, cacheWrite1hTokens: 800 })
  }
  const plain = { prompt_tokens: 9, completion_tokens: 1, ...ofNewApi(0, 0) }
  assert.equal(chat({ ...plain, prompt_tokens_details: { cached_creation_tokens: 4 } }, 'none').cacheWriteTokens, 4)
  assert.equal(chat(plain, 'none').inputTokens, 9)
  const details = (more: unknown) => ({ cache_write_tokens: 1_000, cache_write_tokens_details: more })
  const read = (more: unknown) => chat({ prompt_tokens: 2_000, prompt_tokens_details: details(more) }, 'none')
  for (const none of [null, {}, 'x', { ttl_30m_tokens: 1_000 }]) assert.equal(read(none).cacheWrite1hTokens, undefined)
  assert.deepEqual(read({ ttl_12h_tokens: -1 }).flags, ['usage_invalid'])
})

test('translation 3.1 the peculiarities of usage reports are read', () => {
  assert.equal(
    chat({ prompt_tokens: 9, completion_tokens: 1, prompt_cache_hit_tokens: 6 }, 'cache_hit_fields').cacheReadTokens,
    6,
  )
  assert.equal(
    chat({ prompt_tokens: 9, completion_tokens: 1, cached_tokens: 6 }, 'top_level_cached').cacheReadTokens,
    6,
  )
  assert.equal(
    chat(
      { prompt_tokens: 9, completion_tokens: 64, completion_tokens_details: { reasoning_tokens: 20 } },
      'excl_reasoning',
    ).outputTokens,
    84,
  )
  assert.equal(
    chat({ prompt_tokens: 9, completion_tokens: 0, completion_tokens_details: { reasoning_tokens: 60 } }, 'none')
      .outputTokens,
    60,
  )
})

test('I9 zeros mean not counted yet, and replace no earlier count', () => {
  assert.deepEqual(chat({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, 'none'), {})
  assert.deepEqual(messages({ input_tokens: 0, output_tokens: 0 }), {})
  const start = messages({ input_tokens: 3, cache_read_input_tokens: 90, output_tokens: 1 })
  const end = messages({
    input_tokens: 0,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 0,
    output_tokens: 12,
  })
  assert.deepEqual(mergeUsage(start, end), { inputTokens: 3, cacheReadTokens: 90, outputTokens: 12 })
  assert.deepEqual(messages({ input_tokens: 0, cache_read_input_tokens: 90, output_tokens: 0 }), {
    inputTokens: 0,
    cacheReadTokens: 90,
    outputTokens: 0,
  })
})

test('I9 a report of only zeros replaces no count of a real one', () => {
  const real = { inputTokens: 3, cacheReadTokens: 90, outputTokens: 12 }
  const zeros = { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 }
  assert.deepEqual(mergeUsage(real, zeros), real)
  assert.deepEqual(mergeUsage(real, { outputTokens: 0 }), real)
  assert.deepEqual(mergeUsage({ inputTokens: 3, isOutputPartial: true }, zeros), {
    inputTokens: 3,
    isOutputPartial: true,
  })
  // One counter that is said makes a report, and then its zeros count (a start may carry an estimate).
  assert.deepEqual(mergeUsage(real, { ...zeros, outputTokens: 4 }), { ...zeros, outputTokens: 4 })
  assert.deepEqual(mergeUsage({}, zeros), zeros)
})

test('issue 46 Y17 a later word for the service replaces an earlier one, also if its report has only zeros', () => {
  const real = { inputTokens: 3, service: { service_tier: 'default', speed: 'standard' } }
  for (const counts of [{}, { inputTokens: 0, outputTokens: 0 }, { outputTokens: 9 }]) {
    const merged = mergeUsage(real, { ...counts, service: { service_tier: 'flex' } })
    assert.deepEqual([merged.inputTokens, merged.service], [3, { service_tier: 'flex', speed: 'standard' }])
  }
})

test('I9 the charge that a provider reports is kept, also if its report has no counts or only zeros', () => {
  const real = { inputTokens: 3, outputTokens: 1, isOutputPartial: true }
  for (const counts of [{}, { output_tokens: 0 }, { input_tokens: 0, output_tokens: 0 }])
    assert.deepEqual(mergeUsage(real, messages({ ...counts, cost: 0.25 })), { ...real, costReported: '0.25' })
})

test('C6 an ignored report does not make a partial count final', () => {
  const start = { inputTokens: 900, outputTokens: 1, isOutputPartial: true }
  const ignored = messages({ input_tokens: -1, output_tokens: 0 })
  assert.deepEqual(mergeUsage(start, ignored), { ...start, flags: ['usage_invalid'] })
})

test('C3 the tokens of an advisor model are counted, and those of a fallback attempt only once', () => {
  const advisor = { model: 'stronger', input_tokens: 1_000, cache_read_input_tokens: 200, output_tokens: 500 }
  assert.deepEqual(
    messages({
      input_tokens: 12,
      output_tokens: 53,
      iterations: [
        { type: 'message', input_tokens: 10, output_tokens: 45 },
        { type: 'advisor_message', ...advisor },
        { type: 'fallback_message', input_tokens: 2, output_tokens: 8 },
      ],
    }),
    { inputTokens: 1_012, cacheReadTokens: 200, outputTokens: 553 },
  )
})

test('C1 writes for an hour, thinking and compactions of a messages model are counted', () => {
  assert.deepEqual(
    messages({
      input_tokens: 10,
      cache_creation_input_tokens: 30,
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
      output_tokens: 7,
      output_tokens_details: { thinking_tokens: 4 },
      iterations: [
        { type: 'compaction', input_tokens: 100, output_tokens: 50 },
        { type: 'message', input_tokens: 10, output_tokens: 7 },
      ],
    }),
    { inputTokens: 110, cacheWriteTokens: 30, cacheWrite1hTokens: 20, outputTokens: 57, reasoningTokens: 4 },
  )
  assert.equal(
    messages({ input_tokens: 1, cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 } })
      .cacheWriteTokens,
    5,
  )
  assert.equal(
    messages({ input_tokens: 1, cache_creation_input_tokens: 0, cache_creation: { ephemeral_5m_input_tokens: 2 } })
      .cacheWriteTokens,
    2,
  )
})

test('C6 a report that is not an object is ignored', () => {
  for (const raw of [undefined, null, 7, 'x', []]) {
    assert.deepEqual([chat(raw, 'none'), messages(raw), responses(raw, 'none')], [{}, {}, {}])
  }
})
