import assert from 'node:assert/strict'
import test from 'node:test'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import { modelWireNames } from '../../src/catalog/wire-names.ts'
import { judgeAnswer } from '../../src/live/upstream-trouble.ts'
import type { Target } from '../../src/upstream/target.ts'
import { samples } from '../support/account-refusals.ts'
import { shortAnswers } from '../support/short-answers.ts'

test('F-U7 a path lost while an upstream is waited for is reported as lost, and not as a server that speaks no HTTP', () => {
  const target = { upstream: { baseUrl: 'https://models.example/v1' } } as unknown as Target
  const { trouble, note } = judgeAnswer({ fault: { cause: 'upstream_silent', isReuseRace: false } }, target)
  assert.deepEqual(
    [trouble, note],
    ['connection', 'the path to models.example was lost while it was waited for: check the firewalls on the way'],
  )
})

test('NEW-14 a fault of the proxy is reported with its one cause and its cure', () => {
  const target = { upstream: { baseUrl: 'https://models.example/v1' } } as unknown as Target
  for (const [proxyStatus, told] of [
    [undefined, /^the proxy of the environment cannot be reached: check its address/],
    [407, /refuses the credentials \(status 407\): check user and password/],
    [401, /refuses the credentials \(status 401\)/],
    [403, /refuses the way to models\.example \(status 403\): allow it there/],
    [502, /does not reach models\.example \(status 502\): check base_url/],
    [504, /does not reach models\.example/],
  ] as const) {
    const { trouble, note } = judgeAnswer(
      { fault: { cause: 'upstream_proxy', isReuseRace: false, proxyStatus } },
      target,
    )
    assert.equal(trouble, 'proxy')
    assert.match(note, told)
    assert.match(note, /or ask directly with `proxy: none`$/)
  }
})

test('U2 a provider’s message about the account is reported in the operator’s words, whatever its status', () => {
  const troubles = { key: 'key', denied: 'permission', spent: 'credit' }
  const told = samples.filter(({ about, isBare }) => about in troubles && !isBare)
  for (const { profile, wires, status, about, error, body } of told) {
    const model = { upstreamModel: 'up', profile: resolveProfile(wires[0]!, profile) }
    const target = { upstream: { baseUrl: 'https://models.example/v1' }, model, path: '/v1' } as unknown as Target
    const text = JSON.stringify(body ?? { error })
    const { trouble } = judgeAnswer({ status, type: 'application/json', headers: new Map(), text } as never, target)
    // The cure of a country that has to pay is to pay.
    const right = /enable billing|without a billing account/.test(error.message)
      ? 'credit'
      : troubles[about as keyof typeof troubles]
    assert.equal(trouble, right, error.message)
  }
})

test('clouds 1.5 an exception of AWS that only the head of an answer names is reported for what it is', () => {
  const model = { upstreamModel: 'up', profile: resolveProfile('messages', 'anthropic-bedrock') }
  const target = { upstream: { baseUrl: 'https://models.example' }, model, path: '/model' } as unknown as Target
  for (const [status, exception, expected] of [
    [403, 'ExpiredTokenException', 'key'],
    [403, 'UnrecognizedClientException:http://internal.amazon.com/coral/', 'key'],
    [403, 'AccessDeniedException', 'permission'],
    [400, 'ServiceQuotaExceededException', 'rate'],
    [429, 'ThrottlingException', 'rate'],
    [400, 'ValidationException', 'question'],
  ] as const) {
    const headers = new Map([['x-amzn-errortype', exception]])
    const text = '{"message":"no"}'
    const { trouble } = judgeAnswer({ status, type: 'application/json', headers, text }, target)
    assert.equal(trouble, expected, exception)
  }
})

test('F-U7 an answer of another wire is reported, with the wire of the configuration; one of the own wire is good', () => {
  for (const wire of modelWireNames)
    for (const spoken of modelWireNames) {
      const model = { wire, upstreamModel: 'up', profile: resolveProfile(wire) }
      const target = { upstream: { baseUrl: 'https://models.example/v1' }, model, path: '/v1/ask' } as unknown as Target
      const text = JSON.stringify(shortAnswers[spoken])
      const found = judgeAnswer({ status: 200, type: 'application/json', headers: new Map(), text } as never, target)
      assert.equal(found.trouble, wire === spoken ? null : 'path', `${spoken} for ${wire}: ${found.note}`)
      if (wire !== spoken) assert.match(found.note, new RegExp(`not one of \`wire: ${wire}\``))
    }
})
