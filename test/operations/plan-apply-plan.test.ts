import assert from 'node:assert/strict'
import test from 'node:test'
import { allOperations } from '../../src/operations/openapi.ts'
import { type Ask, startApi, type Told } from './api.ts'
import { document } from './contract.ts'

/*
 * A declarative client, as a provider of OpenTofu is one: it knows a resource by its id only, compares what is wished with what is
 * read, and sends the difference. It is built from the OpenAPI document: paths, methods and fields come from there.
 */

type Wish = Readonly<Record<string, unknown>>
type Resource = { id: string; at: string }

type Kind = {
  /** A whole wish, without fields of `once`. Each field that an edit takes has a value here. */
  first: Wish
  /** Another value for each of these fields. */
  second: Wish
  /** Fields that cannot be taken away, with null, once they have a value. */
  kept: readonly string[]
  /** Whether an answer says that the resource is removed. */
  isGone: (read: Told) => boolean
}

const kinds: Readonly<Record<'account' | 'key' | 'person', Kind>> = {
  account: {
    first: {
      ...{
        name: 'acme',
        state: 'active',
        budget: { credits: '5', per: 'day' },
        rpm: 60,
        warn: ['9', '2.5'],
        plan: 'gold',
      },
      ...{ external_id: 'a-1', metadata: { team: 'red', note: 'ü, "x"=1' }, grant: { credits: '7.5', lapse: true } },
    },
    second: {
      ...{
        name: 'acme 2',
        state: 'suspended',
        budget: { credits: '50', per: null },
        rpm: 1,
        warn: ['3'],
        plan: 'iron',
      },
      ...{ external_id: 'a-2', metadata: { other: '' }, grant: { credits: '8', lapse: false } },
    },
    kept: ['name', 'state'],
    isGone: ({ body }) => (body as Wish)['state'] === 'suspended',
  },
  key: {
    first: {
      ...{ label: 'ci', budget: { credits: '5', per: 'week' }, rpm: 60, models: ['a', 'b-*'], person: 'none' },
      ...{ labels: { team: 'red' }, may_choose: ['project'], external_id: 'k-1', metadata: { a: '1' } },
      expires: '2099-01-31T12:00:00.000Z',
    },
    second: {
      ...{ label: 'cd', budget: { credits: '0.000001', per: 'month' }, rpm: 1_000_000, models: ['c'] },
      ...{ labels: { project: 'apollo' }, may_choose: ['team'], external_id: 'k-2', metadata: { a: '2', b: '' } },
      expires: '2098-01-31T12:00:00.000Z',
    },
    kept: [],
    isGone: ({ body }) => (body as Wish)['revoked'] !== null,
  },
  person: {
    first: {
      ...{ name: 'Ada', external_id: 'p-1', email: 'ada@example.com', account: 'ACCOUNT' },
      ...{ budget: { credits: '5', per: 'month' }, rpm: 60 },
    },
    second: {
      ...{ name: 'Ada L', external_id: 'p-2', email: 'ada.l@example.com' },
      ...{ budget: { credits: '6', per: 'day' }, rpm: 61 },
    },
    // Each of the three names the person, and bounds need the account.
    kept: ['name', 'external_id', 'email', 'account'],
    isGone: ({ status }) => status === 404,
  },
}

/** Fields of an edit that no answer has, with the reason. */
const writeOnly: Record<string, string> = { 'account lapse': 'an older form of `grant.lapse`' }

type Described = {
  operationId: string
  requestBody?: { content: { 'application/json': { schema: { $ref: string } } } }
}
type Schema = { properties?: Record<string, unknown> }

function fieldsOf(id: string): string[] {
  const { path, method } = allOperations.find((operation) => operation.id === id)!
  const described = document.paths[`/api/v1${path}`]![method.toLowerCase()] as unknown as Described
  const name = described.requestBody!.content['application/json'].schema.$ref.replace('#/components/schemas/', '')
  return Object.keys((document.components.schemas as Record<string, Schema>)[name]!.properties!)
}

class Provider {
  readonly #ask: Ask
  writes = 0

  constructor(ask: Ask) {
    this.#ask = ask
  }

  async read({ at }: Pick<Resource, 'at'>): Promise<Told> {
    const read = await this.#ask('GET', at)
    assert.equal(read.status, 200, read.text)
    return read
  }

  /** The fields that are not as wished. A reference to a resource is compared by its id. */
  async plan(resource: Pick<Resource, 'at'>, wish: Wish): Promise<Record<string, unknown>> {
    const { body } = await this.read(resource)
    return Object.fromEntries(Object.entries(wish).filter(([name, value]) => !isSame(body[name], value)))
  }

  async create(path: string, wish: Wish): Promise<Resource> {
    this.writes++
    const made = await this.#ask('POST', path, { body: wish })
    assert.equal(made.status, 201, made.text)
    return { id: made.body['id']!, at: made.headers.get('location')!.replace('/api/v1', '') }
  }

  async apply(resource: Resource, wish: Wish): Promise<void> {
    const difference = await this.plan(resource, wish)
    if (Object.keys(difference).length === 0) return
    this.writes++
    const headers = { 'if-match': (await this.read(resource)).headers.get('etag')! }
    const changed = await this.#ask('PATCH', resource.at, { body: difference, headers })
    assert.equal(changed.status, 200, changed.text)
  }
}

/** The value of an answer is as wished if its members are. An answer has more, such as what is spent of a budget. */
function isSame(value: unknown, wish: unknown): boolean {
  if (typeof wish !== 'object' || wish === null || typeof value !== 'object' || value === null) return value === wish
  if (Array.isArray(wish)) return JSON.stringify((value as unknown[]).toSorted()) === JSON.stringify(wish.toSorted())
  return Object.entries(wish).every(([name, one]) => isSame((value as Record<string, unknown>)[name], one))
}

async function startProvider() {
  const plans = { gold: { times: '0.5' }, iron: { times: '0.6' } }
  const { ask, b } = await startApi({ config: { labels: { team: ['red'], project: ['apollo'] }, plans } })
  return { ask, account: b.id, provider: new Provider(ask) }
}

const paths = { account: '/accounts', key: '/accounts/b/keys', person: '/persons' }

for (const [kind, { first, second, kept, isGone }] of Object.entries(kinds) as [keyof typeof kinds, Kind][])
  test(`issue 50: plan, apply, plan of each field of the resource ${kind} ends without a difference`, async () => {
    const { ask, account, provider } = await startProvider()
    const wishOf = (wish: Wish) =>
      Object.fromEntries(Object.entries(wish).map(([name, value]) => [name, value === 'ACCOUNT' ? account : value]))
    const settable = fieldsOf(`${kind}.update`).filter((name) => !writeOnly[`${kind} ${name}`])
    assert.deepEqual(Object.keys(first).toSorted(), settable.toSorted(), 'each settable field has a value here')

    // Fields that only an edit takes are applied after the creation, as a provider does.
    const whole = kind === 'key' ? { ...wishOf(first), person: (await makePerson(ask, account)).id } : wishOf(first)
    const creatable = new Set(fieldsOf(`${kind}.create`))
    const isCreatable = ([name]: [string, unknown]) => creatable.has(name)
    const resource = await provider.create(paths[kind], Object.fromEntries(Object.entries(whole).filter(isCreatable)))
    await provider.apply(resource, whole)
    assert.deepEqual(await provider.plan(resource, whole), {}, 'after the creation')

    const { writes } = provider
    await provider.apply(resource, whole)
    assert.equal(provider.writes, writes, 'the same wish sends nothing')

    const imported = { id: resource.id, at: resource.at.replace(/[^/]+$/, resource.id) }
    assert.deepEqual((await provider.read(imported)).body, (await provider.read(resource)).body, 'imported by its id')
    assert.deepEqual(await provider.plan(imported, whole), {}, 'after the import')

    for (const [name, value] of Object.entries(second)) {
      const before = (await provider.read(resource)).body as Record<string, unknown>
      assert.deepEqual(Object.keys(await provider.plan(resource, { ...whole, [name]: value })), [name])
      await provider.apply(resource, { [name]: value })
      assert.deepEqual(await provider.plan(resource, { [name]: value }), {}, `${name} is changed`)
      const after = (await provider.read(resource)).body as Record<string, unknown>
      const others = settable.filter((other) => other !== name && !isSame(after[other], before[other]))
      assert.deepEqual(others, [], `${name} alone is changed`)
      whole[name] = value
    }
    for (const name of settable.filter((one) => !kept.includes(one))) {
      await provider.apply(resource, { [name]: null })
      assert.deepEqual(await provider.plan(resource, { [name]: null }), {}, `${name} is taken away`)
      delete whole[name]
    }
    assert.deepEqual(await provider.plan(resource, whole), {}, 'what is left is as wished')

    const removed = kind === 'person' ? await ask('POST', `${resource.at}/erase`) : await ask('DELETE', resource.at)
    assert.equal(removed.status, 200, removed.text)
    assert.ok(isGone(await ask('GET', resource.at)), 'it is shown as removed')
    if (kind === 'person') return
    assert.deepEqual((await ask('DELETE', resource.at)).body, removed.body, 'a second removal changes nothing')
  })

async function makePerson(ask: Ask, account: string): Promise<{ id: string }> {
  const made = await ask('POST', '/persons', { body: { name: 'Grace', account } })
  assert.equal(made.status, 201, made.text)
  return { id: made.body['id']! }
}
