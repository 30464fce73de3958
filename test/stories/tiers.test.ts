import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import type { Catalog, Tier } from '../../src/catalog/model.ts'
import { setAt } from '../../src/catalog/price-list.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { loadConfig } from '../../src/config/load.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { testModel } from '../support/gateway.ts'
import { answers, frames, type Native, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'
import { chooseRows } from '../support/runs.ts'
import { inFrame, type Said, withService } from '../support/served.ts'

/*
 * Law 15 of money.md: what was asked and what is told, as JSON and as a stream, early, late and cut, on nine pairs, is billed by
 * the list and retold in the client's words (rulings C7, Y17).
 */

const prices = {
  ...{ input: '3', cache_read: '3', output: '15' },
  tiers: { flex: '0.5', priority: '2', ultrafast: '6' },
  geos: { us: '1.1' },
}
/** Nine tokens of input and three of output at the base. */
const base = 72_000n
const factors: Record<Tier, [times: bigint, by: bigint]> = { flex: [1n, 2n], priority: [2n, 1n], ultrafast: [6n, 1n] }

let native: Native
before(async () => {
  native = await startNative({ models: clientWireNames.map((wire) => testModel(`tier-${wire}`, wire, { prices })) })
})
after(() => native.close())

type Words = Record<string, string>
type Facts = { tier?: Tier; geo?: string }

/** What clients of a wire ask, and what of it a model of each wire is to be sent. */
function asksOf(client: ClientWire, model: ClientWire): [asked: Words, sent: Words, facts: Facts][] {
  if (client === 'messages') {
    const isSame = model === 'messages'
    return [
      [{}, {}, {}],
      [{ speed: 'fast' }, isSame ? { speed: 'fast' } : { service_tier: 'priority' }, { tier: 'priority' }],
      [{ speed: 'standard' }, isSame ? { speed: 'standard' } : {}, {}],
      [{ inference_geo: 'us' }, isSame ? { inference_geo: 'us' } : {}, isSame ? { geo: 'us' } : {}],
      [{ inference_geo: 'eu' }, {}, {}],
      [{ service_tier: 'auto' }, isSame ? { service_tier: 'auto' } : {}, {}],
      [{ service_tier: 'priority' }, {}, {}],
    ]
  }
  if (model === 'messages')
    return [
      [{}, {}, {}],
      [{ service_tier: 'priority' }, { speed: 'fast' }, { tier: 'priority' }],
      [{ service_tier: 'fast' }, { speed: 'fast' }, { tier: 'priority' }],
      [{ service_tier: 'flex' }, {}, {}],
      [{ service_tier: 'default' }, {}, {}],
    ]
  const same = (word: string, facts: Facts): [Words, Words, Facts] => [
    { service_tier: word },
    { service_tier: word },
    facts,
  ]
  return [
    [{}, {}, {}],
    same('flex', { tier: 'flex' }),
    same('priority', { tier: 'priority' }),
    same('fast', { tier: 'priority' }),
    same('ultrafast', { tier: 'ultrafast' }),
    same('default', {}),
    [{ service_tier: 'gold' }, {}, {}],
  ]
}

/** What a model of a wire tells; `facts` undefined where it tells nothing, so that the request counts. */
function tellsOf(model: ClientWire): [said: Said, facts: Facts | undefined, isUnpriced: boolean][] {
  if (model === 'messages')
    return [
      [{}, undefined, false],
      [
        { usage: { speed: 'fast', inference_geo: 'us', service_tier: 'standard' } },
        { tier: 'priority', geo: 'us' },
        false,
      ],
      [{ usage: { speed: 'standard', inference_geo: 'global', service_tier: 'priority' } }, {}, false],
      [{ usage: { speed: 'standard', inference_geo: 'eu' } }, {}, true],
      [{ usage: { speed: 'warp', inference_geo: 'us' } }, { geo: 'us' }, true],
    ]
  return [
    [{}, undefined, false],
    ...(['flex', 'priority', 'ultrafast'] as const).map((tier): [Said, Facts, boolean] => [
      { answer: { service_tier: tier } },
      { tier },
      false,
    ]),
    [{ answer: { service_tier: 'Fast' } }, { tier: 'priority' }, false],
    [{ answer: { service_tier: 'default' } }, {}, false],
    [{ answer: { service_tier: 'gold' } }, {}, true],
  ]
}

function amountOf({ tier, geo }: Facts): bigint {
  const [times, by] = tier === undefined ? [1n, 1n] : factors[tier]
  return ((base * times) / by / 10n) * (geo === undefined ? 10n : 11n)
}

let catalog: Catalog | undefined

function versionOf(model: ClientWire, { tier, geo }: Facts): string {
  catalog ??= loadConfig({ config: native.gateway.configPath }, {}).catalog
  return setAt(catalog.models.get(`tier-${model}`)!.prices, { at: 0, tier, geo }).version
}

function listOf(model: ClientWire): string {
  catalog ??= loadConfig({ config: native.gateway.configPath }, {}).catalog
  return catalog.models.get(`tier-${model}`)!.prices.kept!.digest
}

const forms = ['json', 'stream', 'early', 'late', 'cut'] as const

/** The answer of a model in one of these forms. */
function played(model: ClientWire, said: Said, form: (typeof forms)[number]) {
  if (form === 'json') return whole(withService(answers[model], said))
  const all = frames[model]
  const half = Math.ceil(all.length / 2)
  // On messages the geography stands in the first event, and in the last but one.
  const pieces = all.map((frame, i) =>
    (form === 'late' && i < half) || (form === 'early' && i >= half) ? frame : inFrame(frame, said),
  )
  return stream(form === 'cut' ? pieces.slice(0, half) : pieces)
}

/** A cut stream, and one that names it early or late, are tried with the first two requests alone. */
const rows = clientWireNames.flatMap((client) =>
  clientWireNames.flatMap((model) =>
    asksOf(client, model).flatMap((ask, index) =>
      tellsOf(model).flatMap((tell) =>
        (index < 2 ? forms : forms.slice(0, 2)).map((form) => ({ client, model, ask, tell, form })),
      ),
    ),
  ),
)
const chosen = chooseRows(rows, ({ client, model, ask, tell, form }) => [
  `${client} ${model}`,
  form,
  ...[ask[0], tell[0]].map((one) => JSON.stringify(one)),
])

for (const client of clientWireNames)
  for (const model of clientWireNames)
    test(`law 15 C7 Y17 a tier is sent as asked, and billed and returned as reported: ${client} to ${model}`, async () => {
      // The log is written now and then: its lines are looked at after the last request.
      const logged: (() => Promise<void>)[] = []
      for (const { ask, tell, form } of chosen.filter((row) => row.client === client && row.model === model)) {
        const [asked, sent, wanted] = ask
        const [said, told, isUnpriced] = tell
        const what = `${JSON.stringify(asked)} ${JSON.stringify(said)} ${form}`
        const { gateway, upstream } = native
        const before = gateway.store.findAccount('tester').balanceNanos
        upstream.play(played(model, said, form))
        const answer = await native.ask(client, { model: `tier-${model}`, stream: form !== 'json', ...asked })
        assert.equal(answer.status, 200, `${what}: ${answer.text}`)
        const { service_tier, speed, inference_geo } = upstream.requests[0]!.json()
        assert.deepEqual(JSON.parse(JSON.stringify({ service_tier, speed, inference_geo })), sent, what)
        const facts = told === undefined ? wanted : { ...told }
        const { bill, details, digest } = gateway.store.findEntry(answer.id)!
        // A word that is not told leaves its member to the request.
        if (told && model === 'messages' && told.tier === undefined && said.usage?.['speed'] === 'warp')
          delete facts.tier
        assert.equal(bill!.priceVersion, versionOf(model, facts), what)
        // Law 4: the entry names what its prices were chosen by.
        assert.deepEqual(details, { list: listOf(model), ...facts }, what)
        assert.ok(digest.startsWith('3:'), what)
        logged.push(async () => {
          const line = (await gateway.logOf(answer.id)) as { flags?: string[]; losses?: string[] }
          const { flags = [], losses = [] } = line
          assert.equal(flags.includes('tier_unpriced'), isUnpriced, what)
          const isLost = Object.keys(asked).length > 0 && Object.keys(sent).length === 0
          assert.equal(losses.length > 0, isLost || losses.some((loss) => !/tier|speed|geo/.test(loss)), what)
        })
        if (form !== 'cut')
          assert.equal(before - gateway.store.findAccount('tester').balanceNanos, amountOf(facts), what)
        if (form === 'json' && client !== model)
          assert.deepEqual(retoldOf(client, answer.text), expectedOf(client, model, said), what)
      }
      for (const look of logged) await look()
      assert.deepEqual(native.gateway.store.verify(verifyOptions), [])
    })

/** The members of an answer by which its client is told of the service. */
function retoldOf(client: ClientWire, text: string): unknown {
  const answer = JSON.parse(text) as { service_tier?: unknown; usage: Words }
  if (client !== 'messages') return answer.service_tier ?? null
  return [answer.usage['speed'], answer.usage['service_tier']]
}

function expectedOf(client: ClientWire, model: ClientWire, { answer, usage }: Said): unknown {
  const word = answer?.['service_tier'] as string | undefined
  if (client !== 'messages') {
    if (model !== 'messages') return word ?? null
    return { fast: 'priority', standard: 'default' }[usage?.['speed'] as string] ?? null
  }
  if (word === undefined) return [null, null]
  const speed = { default: 'standard', priority: 'fast', fast: 'fast' }[word.toLowerCase()]
  return speed === undefined ? [null, null] : [speed, 'standard']
}

test('C7 a word for the base tier passes between chat and responses as on one wire: unchanged, or not at all', async () => {
  const [free, other] = [
    ['auto', 'default', 'standard', 'standard_only'],
    ['', '  ', 'scale', 'reserved', 'on_demand', 'gold', 'DEFAULT', ' default', 'default '],
  ]
  for (const word of [...free, ...other])
    for (const client of ['chat', 'responses'] as const)
      for (const model of ['chat', 'responses'] as const) {
        native.upstream.play(whole(answers[model]))
        const { id } = await native.ask(client, { model: `tier-${model}`, service_tier: word })
        const what = `${client} to ${model}: "${word}"`
        const passes = free.includes(word)
        assert.equal(native.upstream.requests[0]!.json()['service_tier'], passes ? word : undefined, what)
        const { losses = [] } = (await native.gateway.logOf(id)) as { losses?: string[] }
        assert.equal(
          losses.some((loss) => loss.includes('service_tier')),
          !passes,
          `${what}: ${losses}`,
        )
      }
})

test('C7 a tier, speed or geography without a price of its own is dropped and listed', async () => {
  const plain = await startNative()
  for (const client of clientWireNames)
    for (const model of clientWireNames) {
      const asked: Words = client === 'messages' ? { speed: 'fast', inference_geo: 'us' } : { service_tier: 'flex' }
      plain.upstream.play(whole(answers[model]))
      const { id } = await plain.ask(client, { model: `native-${model}`, ...asked })
      const { service_tier, speed, inference_geo } = plain.upstream.requests[0]!.json()
      assert.deepEqual([service_tier, speed, inference_geo], [undefined, undefined, undefined])
      const { losses } = (await plain.gateway.logOf(id)) as { losses: string[] }
      for (const field of Object.keys(asked))
        assert.ok(
          losses.some((loss) => loss.includes(field)),
          `${client} ${model}: ${losses}`,
        )
    }
  await plain.close()
})
