import { randomBytes } from 'node:crypto'
import { clientWires, type JsonObject, probes, reportResult, writeAsk } from '#probes'
import { asObject, parseObject } from '../../bytes/json.ts'
import type { ClientWire } from '../../catalog/wire-names.ts'
import { findMistake, type ProbeReply } from './client-wire.ts'
import { type Asker, type AskModel, none, OwnPromise, ok, type Probe, type ProbeVerdict, StatusError } from './probe.ts'
import { bodyOf, messageOf, needKey, needRequestId } from './read-answer.ts'

const wireList = ['messages', 'chat', 'responses'] as const satisfies readonly ClientWire[]

/** Lists all probes: of the gateway itself, then of each model on each wire, and last of the errors of each wire. */
export function planProbes(models: readonly string[]): Probe[] {
  return [
    { model: null, wire: null, name: 'models', isOurs: true, run: probeList },
    ...models.map((model): Probe => {
      return { model, wire: 'messages', name: 'count tokens', isOurs: true, run: probeCount(model) }
    }),
    ...models.flatMap((model) =>
      wireList.flatMap((wire) =>
        Object.entries(modelProbes).map(
          ([name, run]): Probe => ({
            model,
            wire,
            name,
            run: ({ ask }) => run((question) => ask(question, model)),
          }),
        ),
      ),
    ),
    ...wireList.flatMap((wire) =>
      Object.entries(refusalProbes).map(([name, refusal]): Probe => {
        return {
          model: null,
          wire,
          name,
          isOurs: true,
          run: (asker) => probeRefusal(wire, refusal, models[0] ?? noSuchModel, asker),
        }
      }),
    ),
  ]
}

async function probeList({ request, keyHeaders }: Asker): Promise<ProbeVerdict> {
  const seen = await request('/v1/models', keyHeaders())
  const body = bodyOf(seen)
  const rows = Array.isArray(body['data']) ? body['data'].map(asObject) : []
  if (body['object'] !== 'list' || rows.length === 0) throw new Error('it is not a list of models')
  const fields = ['created', 'id', 'object', 'owned_by']
  const odd = rows.findIndex(
    (row) =>
      Object.keys(row ?? {})
        .sort()
        .join() !== fields.join(),
  )
  if (odd >= 0) throw new Error(`entry ${odd} has not exactly the fields ${fields.join(', ')}`)
  needRequestId(seen)
  return ok(`models: ${rows.length}`)
}

function probeCount(model: string): Probe['run'] {
  return async ({ request, keyHeaders }) => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'How many tokens are these?' }] })
    const count = bodyOf(await request('/v1/messages/count_tokens', keyHeaders(), body))['input_tokens']
    if (!Number.isInteger(count) || (count as number) <= 0) throw new Error('input_tokens is not a positive integer')
    return ok(`${count} tokens`)
  }
}

const noSuchKey = 'sk-triwire-doctor-no-such-key'
const noSuchModel = 'triwire-doctor-no-such-model'

type RefusalProbe = { status: number; model?: string; key?: string; isBroken?: boolean }

/** Probes of errors, which run once on each wire. The wrong key is last, because many wrong keys block this address. */
const refusalProbes: Readonly<Record<string, RefusalProbe>> = {
  'unknown model': { status: 404, model: noSuchModel },
  'malformed body': { status: 400, isBroken: true },
  'wrong key': { status: 401, key: noSuchKey },
}

async function probeRefusal(
  wire: ClientWire,
  refusal: RefusalProbe,
  model: string,
  asker: Asker,
): Promise<ProbeVerdict> {
  const whole = JSON.stringify({ ...writeAsk(wire, probes.text), model: refusal.model ?? model })
  const sent = refusal.isBroken ? whole.slice(0, -1) : whole
  const seen = await asker.request(clientWires[wire].path, asker.keyHeaders(refusal.key), sent)
  const { status, headers, text } = seen
  const body = parseObject(text)
  if (refusal.key && status === 429) return none('too many failed authentications from here: ask again in a minute')
  if (!refusal.key) needKey(seen)
  if (status !== refusal.status) throw new Error(`status ${status} and not ${refusal.status}: ${messageOf(text)}`)
  const mistake = body ? findMistake(wire, body as JsonObject, status, headers.get('x-request-id')) : 'it is not JSON'
  if (mistake) throw new Error(`the error has not the shape of the wire: ${mistake}`)
  needRequestId(seen)
  return ok(messageOf(text))
}

/** The probes of each model on each wire. */
const modelProbes: Readonly<Record<string, (ask: AskModel) => Promise<ProbeVerdict>>> = {
  text: async (ask) => isText(await ask(probes.text)),
  stream: async (ask) => isText(await ask(probes.stream)),
  'tool call': async (ask) => {
    const { toolChoice, text, ...question } = probes.call
    // Some models that think refuse a forced call on their own wire. They may call the tool unforced.
    let refused: StatusError | undefined
    const called = await ask(probes.call).catch((error: unknown) => {
      if (!(error instanceof StatusError) || error.status !== 400) throw error
      refused = error
      return ask({ ...question, text })
    })
    const calls = called.calls.filter(({ name }) => name === toolChoice)
    const [call] = calls
    if (call === undefined && refused) return none(`no call, and none can be forced: ${refused.message}`)
    if (call === undefined) throw new Error('the tool was not called')
    if (!parseObject(call.arguments)) throw new Error(`the arguments are not a JSON object: ${call.arguments}`)
    const results = calls.map(({ id }) => ({ id, text: reportResult }))
    const after = await ask({ ...question, turns: [{ user: text }, { native: called.turn }, { results }] })
    if (after.text === '' && after.calls.length === 0) throw new Error('nothing came after the result of the call')
    return ok(refused ? `not forced, which this model refuses: ${call.arguments}` : call.arguments)
  },
  reasoning: async (ask) => {
    const { reasoning } = await ask(probes.reasoning)
    return reasoning ? ok(`${reasoning.length} characters`) : none('this model shows none here')
  },
  'cache hit': async (ask) => {
    // The text differs in each run, so that a cache hit cannot come from an earlier run.
    const cacheKey = `doctor-${randomBytes(6).toString('hex')}`
    const question = { ...probes.cache, system: `${cacheKey}. ${probes.cache.system}`, cacheKey }
    await ask(question)
    const { usage: { input, cached } = {} } = await ask(question)
    if (cached === undefined) throw new OwnPromise('the count of cached tokens is missing')
    return cached > 0 ? ok(`${cached} of ${input} tokens read from cache`) : none('this model read nothing from cache')
  },
}

function isText({ text, usage }: ProbeReply): ProbeVerdict {
  if (text === '') throw new Error(`the answer has no text, but ${usage?.output} tokens`)
  return ok(`${usage?.input} tokens in, ${usage?.output} out`)
}
