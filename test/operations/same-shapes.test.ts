import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { allOperations } from '../../src/operations/openapi.ts'
import { runsUpTo } from '../support/runs.ts'
import { startApi } from './api.ts'
import { document } from './contract.ts'

/* A resource is written as it is read: a program that keeps a wish and compares it with what is there finds no difference. */

type Schema = { [name: string]: unknown; anyOf?: Schema[]; properties?: Record<string, Schema>; $ref?: string }

const schemas = document.components.schemas as Record<string, Schema>
const resources = ['account', 'key', 'person'] as const

/** Fields of an edit that no answer has, with the reason. */
const writeOnly: Record<string, string> = { 'account lapse': 'an older form of `grant.lapse`' }

/** The forms that a value may have, without null, texts about it, and what a text must look like. */
function formsOf({ description: _, pattern: _p, format: _f, readOnly: _r, ...schema }: Schema): string[] {
  const parts = schema.anyOf ?? (Array.isArray(schema['type']) ? schema['type'].map((type) => ({ type })) : [schema])
  if (!schema.anyOf && parts.length === 1) return [JSON.stringify(bare(schema))]
  return parts.filter((one) => one['type'] !== 'null').flatMap((one) => formsOf(one))
}

/** Bounds of a number and patterns of a text may be narrower where it is written. */
function bare({ minimum: _, maximum: _m, type, ...schema }: Schema): Schema {
  if (schema['items']) return { type, items: formsOf(schema['items'] as Schema) }
  return { type: type === 'integer' ? 'number' : type, ...schema }
}

function bodyOf(id: string): Record<string, Schema> {
  const one = allOperations.find((operation) => operation.id === id)!
  const described = document.paths[`/api/v1${one.path}`]![one.method.toLowerCase()] as unknown as {
    requestBody: { content: { 'application/json': { schema: { $ref: string } } } }
  }
  return schemas[nameOf(described.requestBody.content['application/json'].schema.$ref)]!.properties!
}

function answerOf(id: string): Record<string, Schema> {
  const one = allOperations.find((operation) => operation.id === id)!
  const { responses } = document.paths[`/api/v1${one.path}`]![one.method.toLowerCase()]!
  return schemas[nameOf((responses['200']!.content!['application/json']!.schema as { $ref: string }).$ref)]!.properties!
}

const nameOf = (ref: string) => ref.replace('#/components/schemas/', '')

test('issue 50: each field that an edit takes is in the answer with the same name and the same shape', () => {
  for (const resource of resources) {
    const shown = answerOf(`${resource}.show`)
    for (const [name, schema] of Object.entries(bodyOf(`${resource}.update`))) {
      if (writeOnly[`${resource} ${name}`]) continue
      assert.ok(shown[name], `${resource}.${name} is readable`)
      assert.deepEqual(formsOf(schema), formsOf(shown[name]), `${resource}.${name} has one shape`)
    }
  }
})

const amount = fc.integer({ min: 1, max: 10 ** 9 }).map((number) => `${number / 1_000}`)
const budget = fc.record(
  { credits: amount, per: fc.constantFrom('day', 'week', 'month', null) },
  { noNullPrototype: true },
)
const rpm = fc.integer({ min: 1, max: 1_000_000 })
const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,12}$/).filter((text) => text !== 'none')
const some = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
const own = {
  external_id: some(word),
  metadata: some(
    fc.dictionary(word, fc.constantFrom('', 'a, b=c', 'ü {"x":1}'), { minKeys: 1, maxKeys: 4, noNullPrototype: true }),
  ),
}
const wishes = {
  account: fc.record({
    budget: some(budget),
    rpm: some(rpm),
    warn: some(fc.uniqueArray(amount, { minLength: 1, maxLength: 5 })),
    ...own,
  }),
  key: fc.record({
    label: some(word),
    ...own,
    budget: some(budget),
    rpm: some(rpm),
    models: some(fc.uniqueArray(word, { minLength: 1, maxLength: 5 })),
    labels: some(fc.constantFrom({ team: 'red' }, { team: 'red', project: 'apollo' })),
    may_choose: some(fc.constantFrom(['team'], ['project', 'team'])),
    expires: some(fc.constant('2099-01-31T12:00:00.000Z')),
  }),
  person: fc.record({ email: some(word.map((name) => `${name}@example.com`)), rpm: some(rpm), budget: some(budget) }),
}

test('issue 50: a resource that is read can be written back and changes nothing: no version, no audit record', async () => {
  const config = { labels: { team: ['red'], project: ['apollo'] } }
  const { ask } = await startApi({ config })
  let made = 0
  const create = { account: '/accounts', key: '/accounts/b/keys', person: '/persons' }
  const listed = async () => (await ask('GET', '/audit?limit=1')).body.items![0]!['seq']
  for (const resource of resources) {
    const names = Object.keys(bodyOf(`${resource}.update`)).filter((name) => !writeOnly[`${resource} ${name}`])
    await fc.assert(
      fc.asyncProperty(wishes[resource] as fc.Arbitrary<Record<string, unknown>>, async (wish) => {
        const own = { account: {}, key: {}, person: { account: 'b', external_id: `x${made}` } }[resource]
        const name = resource === 'key' ? {} : { name: `${resource} ${++made}` }
        const created = await ask('POST', create[resource], { body: { ...own, ...name, ...wish } })
        assert.equal(created.status, 201, created.text)
        const at = created.headers.get('location')!.replace('/api/v1', '')
        const read = await ask('GET', at)
        for (const [field, value] of Object.entries(wish))
          if (value !== undefined) assert.deepEqual(partOf(read.body[field], value), sorted(value), field)
        const before = await listed()
        const body = Object.fromEntries(names.map((name) => [name, read.body[name]]))
        const headers = { 'if-match': read.headers.get('etag')! }
        const again = await ask('PATCH', at, { body, headers })
        assert.equal(again.status, 200, again.text)
        assert.deepEqual(again.body, read.body)
        assert.equal(again.headers.get('etag'), read.headers.get('etag'))
        assert.equal(await listed(), before)
      }),
      { numRuns: runsUpTo(12) },
    )
  }
})

/** Lists have an order of their own in answers. */
function sorted(value: unknown): unknown {
  return Array.isArray(value) ? value.toSorted() : value
}

/** The members of an answer that a wish has; numbers in texts may be written in another way. */
function partOf(value: unknown, wish: unknown): unknown {
  if (Array.isArray(wish)) return sorted(value)
  if (typeof wish !== 'object' || wish === null) return value
  return Object.fromEntries(Object.keys(wish).map((name) => [name, (value as Record<string, unknown>)[name]]))
}

test('issue 50: a wrong shape is refused with the field and the cure, and changes nothing', async () => {
  const { ask } = await startApi()
  const wrong: [body: object, pointer: string, detail: RegExp][] = [
    [{ budget: { credits: 5 } }, '/budget/credits', /must be a text/],
    [{ budget: { credits: '5', per: 'year' } }, '/budget/per', /must be one of day, week, month/],
    [{ budget: { credits: '0' } }, '/budget', /more than 0/],
    [{ budget: { per: 'day' } }, '/budget/credits', /is missing/],
    [{ budget: { credits: '5', every: 'day' } }, '/budget/every', /not known/],
    [{ budget: [] }, '/budget', /must be an object/],
    [{ budget: 5 }, '/budget', /such as "5\/day"/],
    [{ warn: ['5', 'x'] }, '/warn/1', /./],
    [{ warn: [] }, '/warn', /1 to 10 amounts/],
    [{ grant: { credits: '5' } }, '/grant/lapse', /is missing/],
    [{ lapse: false }, '/lapse', /name that too/],
    [{ grant: null, lapse: true }, '/lapse', /name that too/],
  ]
  for (const [body, pointer, detail] of wrong) {
    const told = await ask('PATCH', '/accounts/b', { body, headers: { 'if-match': '*' } })
    const [mistake] = told.body['errors'] as unknown as { pointer: string; detail: string }[]
    assert.equal(told.status, 400, JSON.stringify(body))
    assert.equal(mistake!.pointer, pointer, JSON.stringify(body))
    assert.match(mistake!.detail, detail)
  }
  const keys: [body: object, pointer: string][] = [
    [{ models: ['a,b'] }, '/models'],
    [{ labels: { 'team=x': 'y' } }, '/labels'],
    [{ labels: ['team=red'] }, '/labels'],
    [{ may_choose: { team: 'red' } }, '/may_choose'],
  ]
  for (const [body, pointer] of keys) {
    const told = await ask('POST', '/accounts/b/keys', { body })
    assert.equal(told.status, 400, JSON.stringify(body))
    assert.equal((told.body['errors'] as unknown as { pointer: string }[])[0]!.pointer, pointer, told.text)
  }
})

test('issue 50: an object is made from fields that are null, as answers have them', async () => {
  const { ask } = await startApi()
  for (const [path, body] of [
    ['/accounts', { name: 'c' }],
    ['/accounts/b/keys', {}],
    ['/persons', { name: 'Ann' }],
  ] as const) {
    const one = allOperations.find((one) => one.kind === 'creates' && one.path.replace('{account}', 'b') === path)!
    const fields = Object.keys(one.input.shape).filter((name) => !['name', 'account', 'credit'].includes(name))
    const made = await ask('POST', path, {
      body: { ...Object.fromEntries(fields.map((name) => [name, null])), ...body },
    })
    assert.equal(made.status, 201, made.text)
  }
})

test('issue 50: DELETE of a key revokes it, once, and keeps it in lists', async () => {
  const { ask } = await startApi()
  const { id } = (await ask('POST', '/accounts/b/keys', { body: { label: 'gone' } })).body
  const first = await ask('DELETE', `/keys/${id}`)
  assert.equal(first.status, 200)
  assert.ok(first.body['revoked'])
  assert.deepEqual((await ask('DELETE', `/keys/${id}`)).body, first.body)
  assert.deepEqual((await ask('GET', `/keys/${id}`)).body, first.body)
  assert.equal((await ask('GET', '/audit?limit=200&operation=key.revoke')).body.items!.length, 1)
})

test('issue 50: every object and enumeration of the document is a named component, and groups make a smaller document', async () => {
  const { ask } = await startApi()
  const inline: string[] = []
  const look = (value: unknown, at: string): void => {
    if (typeof value !== 'object' || value === null) return
    if ('properties' in value && !/^\/components\/schemas\/\w+$/.test(at)) inline.push(at)
    for (const [name, one] of Object.entries(value))
      if (name !== 'properties' || at.includes('schema')) look(one, `${at}/${name}`)
  }
  look(document.paths, '/paths')
  const metadata = schemas['Account']!.properties!['metadata']!.anyOf![0]!.$ref
  assert.deepEqual([metadata, schemas['Metadata']!['maxProperties']], ['#/components/schemas/Metadata', 50])
  look(document.components, '/components')
  look(document.webhooks, '/webhooks')
  assert.deepEqual(inline, [])
  const small = (await ask('GET', '/openapi.json?groups=account,key')).body as unknown as typeof document
  const ids = Object.values(small.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  )
  assert.ok(ids.length > 8 && ids.every((id) => /^(account|key)\./.test(id)), `${ids}`)
  assert.ok(small.components.schemas['Budget'] && !small.components.schemas['Status'] && !('webhooks' in small))
  const unknown = await ask('GET', '/openapi.json?groups=acount')
  assert.match(unknown.text, /"pointer":"\/groups","detail":"There is no such group: the groups are .*account, key/)
})

test('issue 50: external ids and metadata of accounts and keys are found, kept by rotation, replaced as a whole, and removed', async () => {
  const { ask } = await startApi()
  const any = { 'if-match': '*' }
  const wish = { external_id: 'crm/17', metadata: { team: 'red', 'cost-center': '12, 13' } }
  const account = (await ask('POST', '/accounts', { body: { name: 'own words', ...wish } })).body
  const key = (await ask('POST', `/accounts/${account['id']}/keys`, { body: wish })).body
  await ask('POST', `/accounts/${account['id']}/keys`, { body: {} })
  const idsAt = async (path: string) => (await ask('GET', path)).body.items!.map(({ id }) => id)
  assert.deepEqual(await idsAt('/accounts?external_id=crm/17'), [account['id']])
  assert.deepEqual(await idsAt('/keys?external_id=crm/17'), [key['id']])
  assert.deepEqual(await idsAt('/accounts?external_id=crm'), [])
  const next = (await ask('POST', `/keys/${key['id']}/rotate`, { body: { grace: '1h' } })).body
  assert.deepEqual((await ask('GET', `/keys/${next['id']}`)).body['metadata'], wish.metadata)
  const edit = async (body: object) => (await ask('PATCH', `/accounts/${account['id']}`, { body, headers: any })).body
  assert.deepEqual((await edit({ metadata: { team: 'blue' } }))['metadata'], { team: 'blue' })
  assert.deepEqual((await edit({ metadata: 'b=2,a=1' }))['metadata'], { a: '1', b: '2' })
  assert.deepEqual((await edit({ rpm: 5 }))['metadata'], { a: '1', b: '2' })
  const { seq } = (await ask('GET', '/audit?limit=1')).body.items![0]!
  for (const metadata of ['a=1,b=2', 'b=2,a=1']) await edit({ metadata })
  assert.equal((await ask('GET', '/audit?limit=1')).body.items![0]!['seq'], seq, 'the order of names is no change')
  const bare = await edit({ metadata: null, external_id: 'none' })
  assert.deepEqual([bare['metadata'], bare['external_id']], [null, null])
  const wrong = [
    [{ metadata: {} }, '/metadata'],
    [{ metadata: { team: 5 } }, '/metadata/team'],
    [{ metadata: { 'a b': 'x' } }, '/metadata'],
    [{ metadata: { a: 'x'.repeat(501) } }, '/metadata'],
    [{ metadata: { a: 'x\u0000' } }, '/metadata'],
    [{ metadata: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`n${at}`, ''])) }, '/metadata'],
    [{ metadata: 'a=1,a=2' }, '/metadata'],
    [{ metadata: 'team' }, '/metadata'],
    [{ metadata: ['a'] }, '/metadata'],
    [{ external_id: 'a b' }, '/external_id'],
    [{ external_id: '' }, '/external_id'],
    [{ external_id: 'x'.repeat(201) }, '/external_id'],
    [{ external_id: key['key'] }, '/external_id'],
    [{ metadata: { a: `the key ${key['key']}` } }, '/metadata'],
    [{ metadata: { [`${key['key']}`]: '' } }, '/metadata'],
    [{ metadata: `a=${key['key']}` }, '/metadata'],
    [{ name: key['key'] }, '/name'],
    [{ name: `of ${key['key']}` }, '/name'],
  ] as const
  for (const [body, pointer] of wrong) {
    const told = await ask('PATCH', `/accounts/${account['id']}`, { body, headers: any })
    assert.equal(told.status, 400, JSON.stringify(body))
    assert.equal((told.body['errors'] as unknown as { pointer: string }[])[0]!.pointer, pointer, told.text)
    assert.ok(!told.text.includes(key['key']!), 'U5: no key is repeated')
  }
  assert.ok(!(await ask('GET', '/audit?limit=200')).text.includes(key['key']!), 'U5: no key is kept')
  const long = await ask('PATCH', `/accounts/${account['id']}`, { body: { metadata: { a: '\n' } }, headers: any })
  assert.match(long.text, /The value of \\"a\\" has more than 500 characters, or invisible ones/)
})
