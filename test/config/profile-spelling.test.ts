import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { testFolder } from '../support/child.ts'

function load(profile: string) {
  const folder = testFolder('spelling')
  writeFileSync(
    join(folder, 'triwire.yaml'),
    `catalog:
  pinned: 2026-11-01
  models:
    - id: m
      wire: chat
      upstream: up
      max_output_tokens: 100
      prices: { input: "1", output: "1" }
      profile:
${profile}
upstreams:
  up: { base_url: http://127.0.0.1:9, accounts: [{ name: a, key: k }] }
`,
  )
  return loadConfig({}, {}, folder).catalog.models.get('m')!.profile
}

test('translation 1.6 a profile may be written in the words of the translation rules', () => {
  const profile = load(`        maxField: max_tokens
        replayThought: tool_turns
        required: true
        thinkTags: { open: <think>, close: </think>, implicitOpen: true }
        reasoning: { style: effort, levels: [low, high], canDisable: true }
        drops: [temperature]`)
  assert.equal(profile.chat.maxField, 'max_tokens')
  assert.deepEqual(profile.chat.replayThought, { when: 'tool_turns', required: true })
  assert.deepEqual(profile.thinkTags, { open: '<think>', close: '</think>', implicitOpen: true })
  assert.equal(profile.reasoning.canDisable, true)
  assert.deepEqual([...profile.drops], ['temperature'])
})

test('translation 1.6 snake_case means the same, and an unknown key in either spelling is refused with its line', () => {
  assert.equal(load('        max_field: max_tokens\n        think_tags: off').chat.maxField, 'max_tokens')
  for (const key of ['maxFields', 'max_fields']) {
    assert.throws(
      () => load(`        stringOnly: true\n        ${key}: max_tokens`),
      (error) => error instanceof ConfigError && error.problems[0]?.line === 11 && /max_fields/.test(error.message),
    )
  }
})
