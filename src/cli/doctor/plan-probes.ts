import { asObject } from '../../bytes/json.ts'
import type { WireName } from '../../catalog/model.ts'
import { modelProbes } from './model-probes.ts'
import { type Ask, type Asker, ok, type Probe, type Verdict } from './probe.ts'
import { bodyOf, needRequestId } from './read-answer.ts'
import { noSuchModel, probeRefusal, refusalProbes } from './refusal-probes.ts'
import { clientWires } from './wires/index.ts'

const wireNames = Object.keys(clientWires) as WireName[]

/** All that is asked about the models: the gateway's own answers, each model on each wire, then the refusals of each wire. */
export function planProbes(models: readonly string[]): Probe[] {
  return [
    { model: null, wire: null, name: 'models', isOurs: true, run: probeList },
    ...models.map((model): Probe => {
      return { model, wire: 'messages', name: 'count tokens', isOurs: true, run: probeCount(model) }
    }),
    ...models.flatMap((model) =>
      wireNames.flatMap((wire) =>
        Object.entries(modelProbes).map(
          ([name, run]): Probe => ({ model, wire, name, run: ({ ask }) => run(withModel(ask, model)) }),
        ),
      ),
    ),
    ...wireNames.flatMap((wire) =>
      Object.entries(refusalProbes).map(([name, refusal]): Probe => {
        return {
          model: null,
          wire,
          name,
          isOurs: true,
          run: (asker) => probeRefusal(clientWires[wire], refusal, models[0] ?? noSuchModel, asker),
        }
      }),
    ),
  ]
}

async function probeList({ request, keyHeaders }: Asker): Promise<Verdict> {
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

function withModel(ask: Ask, model: string): Ask {
  return (question) => ask({ model, ...question })
}
