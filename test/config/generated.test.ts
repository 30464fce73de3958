import assert from 'node:assert'
import { readdirSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { withCommands } from '../../scripts/cli-reference.ts'
import { configReference } from '../../scripts/config-reference.ts'
import { presets } from '../../src/catalog/presets.ts'
import { loadConfig } from '../../src/config/load.ts'
import { editorSchema } from '../../src/config/schema.ts'
import { operations } from '../../src/operations/table.ts'

const root = new URL('../../', import.meta.url)
const names = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_KEY_A', 'OPENAI_KEY_B', 'BACKUP_KEY'].concat([
  'GEMINI_API_KEY',
  'GOOGLE_PROJECT',
  'AZURE_RESOURCE',
  'AZURE_KEY',
])
const keys = Object.fromEntries(names.map((name) => [name, 'k']))

test('triwire.schema.json is generated from the schema of the configuration', () => {
  assert.deepStrictEqual(JSON.parse(readFileSync(new URL('triwire.schema.json', root), 'utf8')), editorSchema())
})

test('triwire.schema.json allows a variable wherever the file may have one, and no other text in place of a number', () => {
  const isValid = new Ajv2020({ strict: false, validateFormats: false }).compile(editorSchema())
  const file = (connections: unknown, propagate: unknown) => ({
    limits: { connections_max: connections },
    timeouts: { connect: `\${SECONDS}s` },
    log: { level: `\${LEVEL:-info}` },
    telemetry: { propagate },
  })
  assert(isValid(file(`\${CONNECTIONS}`, `\${PROPAGATE}`)), JSON.stringify(isValid.errors))
  assert(isValid(file(100, true)), JSON.stringify(isValid.errors))
  assert(!isValid(file('many', true)))
  assert(!isValid(file(100, 'yes')))
})

test('docs/configuration.md lists every key', () => {
  assert(readFileSync(new URL('docs/configuration.md', root), 'utf8').includes(configReference()))
})

for (const name of readdirSync(new URL('examples/', root)).filter((file) => /^(?!compose).*\.yaml$/.test(file))) {
  test(`examples/${name} loads, says that its prices are placeholders, and needs the key it names`, () => {
    const file = new URL(`examples/${name}`, root)
    const config = loadConfig({ config: file.pathname }, keys)
    assert.strictEqual(config.isBuiltIn, false)
    // A newcomer copies an example, so that it warns of nothing (NEW-10).
    assert.deepEqual(config.warnings, [])
    for (const model of config.catalog.models.values()) {
      for (const { upstream } of model.routes) assert(config.upstreams.has(upstream))
    }
    const text = readFileSync(file, 'utf8')
    assert.match(text, /prices .*are placeholders/)
    const needed = /\$\{(\w+)\}/.exec(text)?.[1]
    if (needed) assert.throws(() => loadConfig({ config: file.pathname }, {}), new RegExp(`variable ${needed}`))
  })
}

test('NEW-13 examples name models that the presets know', () => {
  const known = new Set(Object.values(presets).flatMap(({ models }) => models.map(({ id }) => id)))
  const vendors = /^(?:google\/)?(?:gpt-\d|claude-(?:opus|sonnet|haiku)|gemini-\d|o\d)/
  let named = 0
  for (const file of [
    'README.md',
    'docs/cli.md',
    'docs/configuration.md',
    ...readdirSync(new URL('examples/', root)).map((file) => `examples/${file}`),
  ]) {
    if (!/\.(md|ya?ml)$/.test(file)) continue
    const text = readFileSync(new URL(file, root), 'utf8')
    for (const [, id = ''] of text.matchAll(/"?upstream_model"?: ?"?([\w./-]+)/g)) {
      if (!vendors.test(id)) continue
      named++
      assert.ok(known.has(id.replace('google/', '')), `${file} names ${id}`)
    }
  }
  assert.ok(named >= 6, `${named}`)
})

test('X4 docs/cli.md has each command with its arguments and options, as the program accepts them', () => {
  const page = readFileSync(new URL('docs/cli.md', root), 'utf8')
  assert.equal(withCommands(page), page)
  for (const one of operations)
    for (const { command } of one.cli) assert.ok(page.includes(`**\`triwire ${command} `), command)
  // Text that people wrote stays, whatever stood between the marks.
  assert.equal(withCommands(page.replaceAll(/(<!-- commands -->)[\s\S]*?(?=<!-- \/commands -->)/g, '$1\nold\n')), page)
  assert.throws(() => withCommands(page.replace('## clock\n', '## watch\n')), /no section for: clock/)
})
