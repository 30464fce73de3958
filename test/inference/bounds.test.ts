import assert from 'node:assert/strict'
import test from 'node:test'
import { boundsOf, type UsageEvidence, type UsageReport, weighUsage } from '../../src/inference/usage.ts'

/** A complete answer to a body of 10,000 bytes, of which 1,000 tokens were shown. */
function weigh(report: UsageReport, more: Partial<UsageEvidence> = {}) {
  return weighUsage({
    report,
    isComplete: true,
    estimateInput: () => 2_000,
    estimateOutput: () => 1_000,
    outputTokensCap: 8_192,
    bounds: boundsOf(Buffer.alloc(10_000), 2_000),
    ...more,
  })
}

const far = { inputTokensMax: Number.POSITIVE_INFINITY, isOutputCapped: false }

test('B18 C14 a body can hold as many tokens as bytes, four times the estimate, or 4,000', () => {
  assert.equal(boundsOf(Buffer.alloc(10_000), 2_000).inputTokensMax, 10_000)
  assert.equal(boundsOf(Buffer.alloc(10_000), 3_000).inputTokensMax, 12_000)
  assert.equal(boundsOf(Buffer.alloc(100), 30).inputTokensMax, 4_000)
})

test('C14 only the model knows the tokens of an image or a document in the body', () => {
  const media = [
    '{"image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}',
    '{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}',
    '{"source":{"data":"JVBERi0=","type": "base64"}}',
    '{"type":"input_file","file_data":"JVBERi0="}',
  ]
  for (const body of media) assert.equal(boundsOf(Buffer.from(body), 30).inputTokensMax, Number.POSITIVE_INFINITY, body)
  const texts = ['{"text":"btoa gives base64, atob takes it"}', JSON.stringify({ text: '{"encoding":"base64"}' })]
  for (const body of texts) assert.equal(boundsOf(Buffer.from(body), 30).inputTokensMax, 4_000, body)
  assert.ok(boundsOf(Buffer.from(media[0]!), 30).isOutputCapped)
})

test('B18 C14 a reported input that the body cannot hold is replaced by the estimate, in whichever counter it is', () => {
  const reports: UsageReport[] = [
    { inputTokens: 2 ** 31, outputTokens: 900 },
    { inputTokens: 5, cacheReadTokens: 10_000, outputTokens: 900 },
    { inputTokens: 5, cacheReadTokens: 5_000, cacheWriteTokens: 5_000, cacheWrite1hTokens: 9, outputTokens: 900 },
  ]
  for (const report of reports) {
    const { usage, source, flags } = weigh(report)
    const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = usage
    assert.deepEqual([inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens], [2_000, 0, 0, 900])
    assert.equal(source, 'estimated')
    assert.ok(flags.includes('input_absurd'))
    assert.equal(weigh(report, { bounds: far }).usage.inputTokens, report.inputTokens)
  }
  assert.deepEqual(weigh({ inputTokens: 10_000, outputTokens: 900 }).flags, [])
})

test('B18 C14 a final output below a quarter of the shown text is replaced by its estimate', () => {
  assert.equal(weigh({ inputTokens: 5, outputTokens: 249 }).usage.outputTokens, 1_000)
  assert.equal(weigh({ inputTokens: 5, outputTokens: 0 }).usage.outputTokens, 1_000)
  assert.equal(weigh({ inputTokens: 5, outputTokens: 250 }).usage.outputTokens, 250)
  const short = { estimateOutput: () => 200 }
  assert.equal(weigh({ inputTokens: 5, outputTokens: 1 }, short).usage.outputTokens, 1)
})

test('C14 zeros of a complete report are believed for short answers, and for no others', () => {
  const zeros = { inputTokens: 0, outputTokens: 0 }
  assert.deepEqual(weigh(zeros, { estimateOutput: () => 200 }).usage.inputTokens, 0)
  assert.equal(weigh(zeros, { estimateOutput: () => 200 }).source, 'final')
  const long = weigh(zeros)
  assert.deepEqual([long.usage.inputTokens, long.usage.outputTokens], [2_000, 1_000])
  assert.ok(long.flags.includes('usage_zero'))
  assert.equal(weigh(zeros, { isComplete: false, estimateOutput: () => 9 }).usage.inputTokens, 2_000)
})

test('C14 an output above twice the cap is believed if the provider writes more than the answer', () => {
  assert.equal(weigh({ inputTokens: 5, outputTokens: 20_000 }).usage.outputTokens, 1_000)
  assert.equal(weigh({ inputTokens: 5, outputTokens: 20_000 }, { bounds: far }).usage.outputTokens, 20_000)
})
