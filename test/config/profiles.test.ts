import assert from 'node:assert'
import { globSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { keysOfWires, type Profile } from '../../src/catalog/profile.ts'
import { profileNames, resolveProfile } from '../../src/catalog/profiles.ts'
import { profileMap } from '../../src/config/fields.ts'
import { readProfile } from '../../src/config/models.ts'

const wires = ['messages', 'chat', 'responses'] as const

test('every named profile resolves on its wires and refuses the others', () => {
  for (const name of profileNames) {
    let fits = 0
    for (const wire of wires) {
      try {
        const profile = resolveProfile(wire, name)
        fits++
        assert.deepStrictEqual(Object.keys(profile).sort(), Object.keys(resolveProfile(wire, { extends: name })).sort())
        for (const key of Object.keys(resolveProfile(wire))) assert(key in profile, `${name} lacks ${key}`)
      } catch (error) {
        assert.match(String(error), new RegExp(`${name} is for `))
      }
    }
    assert(fits > 0)
  }
})

test('T5 T17 the plain profiles have the minimums and marks of their wires', () => {
  assert.strictEqual(resolveProfile('responses').minOutput, 16)
  assert.strictEqual(resolveProfile('chat').minOutput, 1)
  assert.strictEqual(resolveProfile('messages').messages.autoCache, 'auto')
  assert.strictEqual(resolveProfile('chat').messages.autoCache, 'off')
  assert.strictEqual(resolveProfile('chat').chat.maxField, 'max_completion_tokens')
  assert.strictEqual(resolveProfile('chat').maxStops, 4)
  assert.strictEqual(resolveProfile('messages').toolNameMax, 128)
})

test('P5 the profile of a strict upstream says so', () => {
  assert.strictEqual(resolveProfile('messages', 'anthropic').strictFields, true)
  assert.strictEqual(resolveProfile('messages').strictFields, false)
})

test('a setting overrides the profile that it extends; reasoning is merged key by key', () => {
  const profile = resolveProfile('chat', { extends: 'deepseek', reasoning: { style: 'effort' }, images: false })
  const { reasoning } = resolveProfile('chat', 'deepseek')
  assert.notStrictEqual(reasoning.style, 'effort')
  assert.deepStrictEqual(profile.reasoning, { ...reasoning, style: 'effort' })
  assert.strictEqual(profile.images, false)
  assert.strictEqual(profile.usageQuirk, 'cache_hit_fields')
  assert.deepStrictEqual(profile.chat.replayThought, { when: 'all', required: true })
})

test('Y13 a profile adds to the fields and containers of the one that it extends', () => {
  const written = profileMap.parse({ extends: 'litellm', routing_fields: ['Region'], routing_containers: ['Box'] })
  const profile = resolveProfile('chat', readProfile(written))
  assert.deepStrictEqual(profile.routingFields, ['metadata.tags', 'region'])
  assert.deepStrictEqual(profile.routingContainers, ['extra_body', 'litellm_params', 'litellm_metadata', 'box'])
})

test('the profile of the translation cases can be written in the file', () => {
  const written = profileMap.parse({
    reasoning: { style: 'effort', levels: ['low', 'medium', 'high'], can_disable: true },
    max_stops: 4,
    tool_id_style: 're64',
    replay_thought: { when: 'never' },
    accepts: ['top_k', 'strict'],
    drops: ['seed'],
    think_tags: { open: '<think>', close: '</think>' },
    developer_role: true,
    files: true,
    tool_images: 'native',
    prefill: 'flag:continue_final_message',
  })
  const profile = resolveProfile('chat', readProfile(written))
  assert.deepStrictEqual(profile.reasoning, { style: 'effort', levels: ['low', 'medium', 'high'], canDisable: true })
  assert.deepStrictEqual(profile.thinkTags, { open: '<think>', close: '</think>', implicitOpen: false })
  assert.deepStrictEqual(profile.accepts, new Set(['top_k', 'strict']))
  assert.deepStrictEqual(profile.drops, new Set(['seed']))
  assert.strictEqual(profile.chat.toolImages, 'native')
  assert.strictEqual(profile.prefill, 'flag:continue_final_message')
  assert.strictEqual(profile.toolNameMax, 64)
})

test('think_tags: false removes the tags of the extended profile', () => {
  const tagged = { thinkTags: { open: '<think>', close: '</think>', implicitOpen: true } }
  assert.deepStrictEqual(resolveProfile('chat', tagged).thinkTags, tagged.thinkTags)
  assert.strictEqual(
    resolveProfile('chat', { ...tagged, ...(readProfile({ think_tags: false }) as object) }).thinkTags,
    undefined,
  )
})

test('a key that a single wire reads is in the group of that wire, and every other key is in no group', () => {
  const places = (profile: Profile, key: string) =>
    [profile, ...wires.map((wire) => profile[wire])].map((group) => Object.hasOwn(group, key))
  for (const wire of wires) {
    const profile = resolveProfile(wire, 'simulator')
    for (const key of new Set(wires.flatMap((one) => keysOfWires[one]))) {
      const readers = wires.filter((one) => (keysOfWires[one] as readonly string[]).includes(key))
      const expected = readers.length === 1 ? [false, ...wires.map((one) => one === readers[0])] : [true, ...noGroup]
      assert.deepStrictEqual(places(profile, key), expected, `${wire}: ${key}`)
    }
  }
})

const noGroup = wires.map(() => false)

test('a wire reads its own group of a profile, and no group of another wire', () => {
  for (const wire of wires) {
    const folder = new URL(`../../src/wires/${wire}/`, import.meta.url)
    const others = wires.filter((other) => other !== wire).join('|')
    for (const file of globSync('*.ts', { cwd: folder }))
      assert.doesNotMatch(
        readFileSync(new URL(file, folder), 'utf8'),
        new RegExp(`profile\\.(?:${others})\\b|\\{ (?:${others})(?::|,| \\}).*: Profile`),
        `${wire}/${file}`,
      )
  }
})
