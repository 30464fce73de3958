import { deepEqual, equal, ok } from 'node:assert/strict'
import test from 'node:test'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import { smallest, translate } from './support/exchange.ts'

/* What vendors are known to refuse or to need, by the profiles that carry their names. */

const penalties = ['frequency_penalty', 'presence_penalty', 'logit_bias', 'user', 'store', 'service_tier'] as const

for (const profile of ['gemini', 'gemini-3'])
  for (const from of ['chat', 'responses'] as const)
    test(`BUG-15 ${profile} is not sent a field that it does not know, from ${from}`, () => {
      const drops = resolveProfile('chat', profile).drops
      const known = penalties.filter((field) => !drops.has(field))
      const fields = { frequency_penalty: 0.5, presence_penalty: 0.5, logit_bias: { 1: 2 }, user: 'u', store: false }
      const { body } = translate(from, 'chat', { ...smallest[from], ...fields }, { profile })
      deepEqual(known, ['presence_penalty'])
      for (const field of drops) ok(!(field in body), field)
    })

const thought = { type: 'thinking', thinking: 'deep', signature: 'sig' }
const turns = [
  { role: 'user', content: 'Hi' },
  { role: 'assistant', content: [thought, { type: 'text', text: 'a' }] },
  { role: 'user', content: 'Go on' },
  { role: 'assistant', content: [thought, { type: 'tool_use', id: 't1', name: 'f', input: {} }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'r' }] },
]

/** By profile, the field in which a thought of the present tool loop returns; undefined: it does not. */
const replays: [profile: string, field: string | undefined][] = [
  ['openrouter', 'reasoning'],
  ['moonshot', 'reasoning_content'],
  ['deepseek', 'reasoning_content'],
  ['default-chat', undefined],
]

for (const [name, field] of replays)
  test(`BUG-13 T23 ${name} gets the thoughts of tool turns ${field ? `in ${field}` : 'never'}`, () => {
    const ask: object = { ...smallest.messages, messages: turns }
    const { body } = translate('messages', 'chat', ask, { profile: name })
    const [, answer, , calls] = body.messages as Record<string, unknown>[]
    for (const turn of [answer!, calls!])
      for (const key of ['reasoning', 'reasoning_content'])
        equal(turn[key], turn === calls && key === field ? 'deep' : undefined, key)
  })
