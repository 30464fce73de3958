import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { testFolder } from '../support/folder.ts'

const folder = testFolder('chains')
const modelOf = (id: string, more: object = {}) => ({
  ...{ id, wire: 'chat', upstream: `up-${id}`, max_output_tokens: 100, prices: { input: 2, output: 4 } },
  ...more,
})
const abc = [modelOf('a'), modelOf('b'), modelOf('c', { also: ['also-c'] })]

/** @returns the configuration, or the mistakes with their keys */
function read(models: object[], hosts: Record<string, string> = {}) {
  const upstreams = Object.fromEntries(
    ['a', 'b', 'c', 'd'].map((id) => {
      const accounts = [{ name: 'x', key: 'k' }]
      return [`up-${id}`, { base_url: `http://${hosts[id] ?? `${id}.internal`}:9001/v1`, accounts }]
    }),
  )
  writeFileSync(join(folder, 'a.yaml'), stringify({ catalog: { pinned: '2026-11-01', models }, upstreams }))
  try {
    return loadConfig({ config: 'a.yaml' }, {}, folder)
  } catch (error) {
    assert.ok(error instanceof ConfigError, `${error}`)
    return error.problems.map(({ message }) => message)
  }
}

test('Y23 a chain is a name of the catalog, with figures that each of its models supports', () => {
  const narrow = modelOf('d', { max_output_tokens: 50, context_window: 1_000 })
  const config = read([{ id: 'x', chain: ['a', 'd'], when: ['budget'], chain_return: '2m' }, ...abc, narrow])
  assert.ok(!Array.isArray(config))
  const { models, entries, listBody } = config.catalog
  assert.deepEqual(
    JSON.parse(listBody).data.map(({ id }: { id: string }) => id),
    ['x', 'a', 'b', 'c', 'also-c', 'd'],
  )
  assert.equal(entries.length, 4)
  const { chain, outputTokensMax, contextWindow } = models.get('x')!
  assert.deepEqual([outputTokensMax, contextWindow, chain!.returnMs], [50, 1_000, 120_000])
  assert.deepEqual([...chain!.when], ['budget'])
  assert.deepEqual(
    chain!.entries.map(({ id }) => id),
    ['a', 'd'],
  )
})

const mistakes: [chain: object, message: RegExp][] = [
  [{ id: 'x', chain: ['a'] }, /^catalog\.models\[3\]\.chain must name two models at least/],
  [{ id: 'x', chain: ['a', 'b', 'c', 'a', 'b'] }, /chain must name four models at most/],
  [{ id: 'x', chain: ['a', 'a'] }, /chain\[1\] is listed already, as chain\[0\]/],
  [{ id: 'x', chain: ['a', 'nobody'] }, /chain\[1\] must be the id of a model of the catalog/],
  [{ id: 'x', chain: ['a', 'also-c'] }, /chain\[1\] is a further name: write the id of its model, c/],
  [{ id: 'x', chain: ['a', 'x'] }, /chain\[1\] is a chain/],
  [{ id: 'a', chain: ['a', 'b'] }, /id is also the id of catalog\.models\[0\]/],
  [{ id: 'x', chain: ['a', 'b'], when: ['always'] }, /when\[0\] must be one of: capacity, unavailable/],
  [
    { id: 'x', chain: ['a', 'b'], whn: ['budget'] },
    /whn is not a known key; known here: id, chain, when, chain_return$/,
  ],
  [{ id: 'x', chain: ['a', 'b'], wire: 'chat' }, /wire is not a known key/],
  [{ id: 'x', chain: ['a', 'b'], also: ['y'] }, /also is not a known key; known here: id, chain, when, chain_return$/],
  [{ id: 'x', wire: 'chat', upstream: 'up-a', prices: { input: 1, output: 1 }, max: 1 }, /max is not a known key/],
]

for (const [chain, message] of mistakes)
  test(`Y23 a chain with a mistake is reported with its key: ${JSON.stringify(chain)}`, () => {
    const told = read([...abc, chain])
    assert.ok(Array.isArray(told), 'it is accepted')
    assert.ok(
      told.some((one) => message.test(one)),
      told.join('\n'),
    )
  })

test('Y23 check warns of a chain that is expensive, narrow, or of one provider', () => {
  const told = (models: object[], hosts?: Record<string, string>) => {
    const config = read(models, hosts)
    assert.ok(!Array.isArray(config), String(config))
    return config.warnings.map(({ message }) => message).filter((one) => one.includes('chain'))
  }
  const chain = { id: 'x', chain: ['a', 'b'] }
  assert.deepEqual(told([...abc, chain]), [])
  assert.match(told([...abc, chain], { a: 'one', b: 'one' }).join(), /chain has models of one provider only/)
  const dear = modelOf('b', { prices: { input: 5, output: 4 } })
  assert.match(told([modelOf('a'), dear, chain]).join(), /chain\[1\] costs more than twice what a does/)
  const cheap = { from: '2026-01-01T00:00:00Z', input: 2, output: 4 }
  const cheaper = modelOf('b', {
    prices: [{ input: 9, output: 9 }, cheap, { ...cheap, from: '9000-01-01T00:00:00Z', input: 9 }],
  })
  assert.deepEqual(told([modelOf('a'), cheaper, chain]), [], 'the prices of today count')
  const [wide, small] = [modelOf('a', { context_window: 9_000 }), modelOf('b', { context_window: 8_000 })]
  assert.match(told([wide, small, chain]).join(), /chain\[1\] has a smaller context window than a/)
})
