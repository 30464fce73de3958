import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { refusals } from '../../src/catalog/refusals.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import type { Explanation } from '../../src/operations/shapes.ts'
import { commonRefusals } from '../../src/upstream/verdict.ts'
import { type Sample, samples } from '../support/account-refusals.ts'
import { testModel } from '../support/gateway.ts'
import { answers, frames, type Native, startNative } from '../support/native.ts'
import { type Answer, type RawRequest, stream, whole } from '../support/raw-upstream.ts'
import { chooseRows } from '../support/runs.ts'

/*
 * What providers say of the operator's account, through the whole gateway: every row of src/catalog/refusals.ts as its
 * provider says it, over HTTP and inside an answer, with another account and without one.
 */

/** Every way in which a refusal comes. */
const forms = ['json', 'stream', 'body', 'event', 'event of a translated answer'] as const
type Form = (typeof forms)[number]

type Case = { sample: Sample; wire: ClientWire; form: Form; pool: 'duo' | 'solo'; id: string }

const all: readonly Case[] = samples
  .flatMap((sample) => sample.wires.map((wire) => ({ sample, wire })))
  .flatMap((one) => formsOf(one.sample).map((form) => ({ ...one, form })))
  .flatMap((one) => poolsOf(one.form).map((pool) => ({ ...one, pool })))
  .map((one, index) => ({ ...one, id: `m${index}` }))
const cases = chooseRows(all, ({ sample, wire, form, pool }) => [samples.indexOf(sample), wire, form, pool])

/** What says nothing but its status comes over HTTP alone. */
function formsOf({ isBare }: Sample): readonly Form[] {
  return isBare ? ['json', 'stream'] : forms
}

/** One account alone tells nothing more of the forms that only another place reads. */
function poolsOf(form: Form): readonly Case['pool'][] {
  return form === 'body' || form === 'event of a translated answer' ? ['duo'] : ['duo', 'solo']
}

const account = (name: string) => ({ name, key: `upstream-key-${name}` })

let native: Native
before(async () => {
  const models = [
    ...cases.map(({ sample: { profile }, wire, pool, id }) => testModel(id, wire, { profile, upstream: pool })),
    ...clientWireNames.map((wire) => testModel(`seen-${wire}`, wire, { upstream: 'duo' })),
    ...clientWireNames.map((wire) => testModel(`echo-${wire}`, wire, { upstream: 'duo', profile: profileOf(wire) })),
    testModel('waits', 'chat', { upstream: 'duo', profile: 'qwen' }),
  ]
  const at = (base_url: string) => ({
    solo: { base_url, accounts: [account('a')] },
    duo: { base_url, accounts: [account('a'), account('b')] },
  })
  native = await startNative({
    cools: true,
    // Each with its own prices: the file may refer to itself a few times only.
    models: JSON.parse(JSON.stringify(models)),
    config: { upstreams: at('http://127.0.0.1:9') },
  })
  native.gateway.reload({ upstreams: at(native.upstream.url), limits: { requests_per_minute: 1_000_000 } })
})
after(() => native.close())

function profileOf(wire: ClientWire): string {
  return { messages: 'anthropic', chat: 'gemini', responses: 'xai' }[wire]
}

/** Who asked: the name of the upstream account. */
function askedBy(request: RawRequest): string {
  return /upstream-key-(\w)/.exec(`${request.header('authorization')} ${request.header('x-api-key')}`)![1]!
}

/** What the upstream answers, without a wait for the other side between two writes. */
function play(...answers: Answer[]): void {
  native.upstream.play(
    ...answers.map(
      (answer): Answer =>
        (socket, request) => {
          socket.setNoDelay(true)
          return answer(socket, request)
        },
    ),
  )
}

/** The error as an event of the wire's streams. */
function eventOf(wire: ClientWire, { error }: Sample): string {
  if (wire === 'messages') return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
  if (wire === 'chat') return `data: ${JSON.stringify({ error })}\n\n`
  const { code, type, message } = error
  const word = [code, type].find((one) => typeof one === 'string') ?? null
  const response = { ...answers.responses, status: 'failed', output: [], error: { code: word, message } }
  return `event: response.failed\ndata: ${JSON.stringify({ type: 'response.failed', sequence_number: 1, response })}\n\n`
}

function refusalOf({ sample, wire, form }: Case): Answer {
  const { status, error, body = wire === 'messages' ? { type: 'error', error } : { error } } = sample
  if (form === 'json' || form === 'stream') return whole(body, status)
  if (form === 'body') return whole({ error })
  return wire === 'responses' ? stream([frames.responses[0]!, eventOf(wire, sample)]) : stream([eventOf(wire, sample)])
}

async function ask({ wire, form, id }: Pick<Case, 'wire' | 'form' | 'id'>) {
  const client = form === 'event of a translated answer' ? (wire === 'chat' ? 'messages' : 'chat') : wire
  const got = await native.ask(client, { model: id, stream: form !== 'json' && form !== 'body' })
  return { ...got, asked: native.upstream.requests.map(askedBy) }
}

/** What the first attempt died of, as the operator is told. */
async function explain(id: string): Promise<string | null | undefined> {
  // Operators have a window of their own, by the gateway's clock, which stands still.
  native.gateway.advance(1_000)
  const response = await native.gateway.askAdmin(`/api/v1/requests/${id}/explain`)
  return ((await response.json()) as Explanation).attempts?.[0]?.cause
}

function good({ wire, form }: Pick<Case, 'wire' | 'form'>): Answer {
  return form === 'json' || form === 'body' ? whole(answers[wire]) : stream(frames[wire])
}

const isAccounts = ({ about }: Sample) => about !== 'busy' && !isRequests(about)
const isRequests = (about: Sample['about']) => about === 'request' || about === 'sealed'
/** Statuses that say it already. */
const own: Partial<Record<Sample['about'], number>> = { key: 401, spent: 402, denied: 403 }

/** What the operator reads. */
function causeOf({ sample: { about, status }, form }: Case): string {
  const isHttp = form === 'json' || form === 'stream'
  if (isHttp && (!isAccounts({ about } as Sample) || own[about] === status)) return `upstream_${status}`
  if (!isAccounts({ about } as Sample)) return form === 'body' ? 'upstream_error_body' : 'upstream_error_event'
  return `upstream_account_${about}`
}

const statuses = { spent: 503, key: 503, denied: 503, busy: 429, request: 400, sealed: 400 }
const codes = { 503: /server error|try again/i, 429: /rate limit/i, 400: /./ }

async function tryOut(one: Case): Promise<void> {
  const { sample, pool } = one
  const { about, isPartial } = sample
  const others = pool === 'duo' && !isRequests(about)
  play(refusalOf(one), good(one))
  const first = await ask(one)
  const status = others ? 200 : statuses[about]
  assert.equal(first.status, status, first.text)
  assert.equal(await explain(first.id), causeOf(one))
  if (others) {
    assert.match(first.text, /Hé/)
    assert.deepEqual([...first.asked].sort(), ['a', 'b'])
  } else {
    assert.match(first.text, codes[status as keyof typeof codes])
    assert.equal(first.asked.length, 1)
    if (isAccounts(sample)) assert.ok(!first.text.includes(sample.error.message), 'its words reach no client')
  }
  if (!others) assert.equal((await native.gateway.logOf(first.id))['cause'], causeOf(one))
  // At once it is left alone, unless it serves other requests.
  play(good(one))
  const next = await ask(one)
  const isLeftAlone = !isRequests(about) && !isPartial
  if (pool === 'duo' && isLeftAlone) assert.deepEqual(next.asked, [first.asked[1]])
  assert.equal(next.status, pool === 'solo' && isLeftAlone ? statuses[about] : 200, next.text)
  if (pool === 'solo') assert.equal(next.asked.length, isLeftAlone ? 0 : 1)
  if (pool === 'duo' && !isLeftAlone) {
    const { items } = (await (await native.gateway.askAdmin('/api/v1/upstreams')).json()) as {
      items: { model: string; state: string }[]
    }
    const states = items.filter(({ model }) => model === one.id).map(({ state }) => state)
    assert.deepEqual(states, ['ready', 'ready'])
  }
}

for (const [sample, ofSample] of Map.groupBy(cases, (one) => one.sample)) {
  const { profile, status, about, isPartial, error } = sample
  const does = isPartial ? ', which goes on to serve other requests' : ''
  test(`U1 U2 ${profile}: ${status} “${error.message.slice(0, 70)}” is about ${about}${does}, in every form`, async () => {
    for (const one of ofSample) {
      await tryOut(one).catch((failed) => {
        throw new Error(`${one.wire}, ${one.form}, ${one.pool}: ${failed.message}`, { cause: failed })
      })
    }
  })
}

test('U2 every row of the tables matches one of the samples, and no row that disables an account matches a part of a text', () => {
  const rows = [...Object.values(refusals).flat(), ...commonRefusals]
  const unsaid = rows.filter(
    ({ status, code, text }) =>
      !samples.some(
        ({ status: said, error }) =>
          (!status || status.includes(said)) &&
          (!code || JSON.stringify(error).includes(`"${code}"`)) &&
          (!text || text.test(error.message)),
      ),
  )
  assert.deepEqual(unsaid, [])
  for (const { about, status, text, isPartial } of rows) {
    if (!text) continue
    assert.ok(status && !text.flags.includes('m'), `${text}`)
    if (isAccounts({ about } as Sample) && !isPartial) assert.match(text.source, /^\^.*\$$/)
  }
})

test('U1 an account that refuses after a part of the answer was shown is taken out of use, and the stream fails', async () => {
  for (const wire of clientWireNames) {
    const shown = frames[wire].slice(0, wire === 'responses' ? 5 : 3)
    const sample = { error: { message: 'Refused.', type: 'insufficient_quota' } } as unknown as Sample
    play(stream([...shown, eventOf(wire, sample)]))
    const one = { wire, form: 'stream', id: `seen-${wire}` } as const
    const { text, asked, id } = await ask(one)
    assert.match(text, /Hé/)
    assert.match(text, wire === 'responses' ? /response\.failed/ : /"error":/)
    assert.doesNotMatch(text, /message_stop|\[DONE\]|response\.completed|quota/)
    assert.equal(await explain(id), 'upstream_account_spent')
    for (let times = 0; times < 4; times++) {
      play(good(one))
      const next = await ask(one)
      assert.equal(next.status, 200)
      assert.notEqual(next.asked[0], asked[0], wire)
    }
  }
})

test('U1 if one account refuses and the other is out of use for capacity, the client is asked to wait', async () => {
  const one = { wire: 'chat', form: 'json', id: 'waits' } as const
  play(whole({ error: { message: 'slow' } }, 429, { 'retry-after': '40' }), good(one))
  assert.equal((await ask(one)).status, 200)
  play(whole({ error: { code: 'Arrearage', message: 'Access denied' } }, 400))
  const { status, headers, id, asked } = await ask(one)
  assert.deepEqual([status, asked.length], [429, 1])
  assert.equal(headers.get('retry-after'), '40')
  assert.equal((await native.gateway.logOf(id))['cause'], 'upstream_account_spent')
})

/** How providers quote what a client sent. */
const quotes: readonly ((words: string) => string)[] = [
  (words) => `${words}: Extra inputs are not permitted`,
  (words) => `${words}\n: Extra inputs are not permitted`,
  (words) => `messages.0.${words}`,
  (words) => `Invalid JSON payload received. Unknown name "${words}": Cannot find field.`,
  (words) => `Invalid value: '${words}'.`,
  (words) => `\n${words}`,
  (words) => `tools.0.name: ${words}`,
  (words) => ` ${words}`,
]

test('U2 a client whose request makes the model quote an account’s refusal gets an error itself; no account is disabled', async () => {
  const spoken = samples.filter(
    (sample) => isAccounts(sample) && !sample.isPartial && sample.error.message !== 'Refused.',
  )
  for (const wire of clientWireNames) {
    const texts = spoken.filter(({ profile, status }) => profile === profileOf(wire) && status === 400)
    assert.ok(texts.length >= 2)
    const rows = texts.flatMap(({ error }) =>
      quotes.flatMap((quote) => [true, false].map((isStream) => ({ error, quote, isStream }))),
    )
    // Quotes are told apart by their place, because two may be written alike.
    const axesOf = ({ error, quote, isStream }: (typeof rows)[number]) => [
      error.message,
      quotes.indexOf(quote),
      isStream,
    ]
    for (const { error, quote, isStream } of chooseRows(rows, axesOf)) {
      const message = quote(error.message)
      const told = { error: { message, type: 'invalid_request_error', param: error.message } } as unknown as Sample
      play(isStream ? stream([eventOf(wire, told)]) : whole({ error: told.error }, 400))
      const { status } = await native.ask(wire, {
        model: `echo-${wire}`,
        stream: true,
        [error.message]: 'insufficient_quota',
      })
      assert.equal(status, 400, message)
      assert.equal(native.upstream.requests.length, 1)
    }
  }
  const { items } = (await (await native.gateway.askAdmin('/api/v1/upstreams')).json()) as {
    items: { model: string; state: string }[]
  }
  const echoes = items.filter(({ model }) => model.startsWith('echo-'))
  assert.deepEqual(new Set(echoes.map(({ state }) => state)), new Set(['ready']))
})
