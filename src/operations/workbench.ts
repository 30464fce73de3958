import { z } from 'zod'
import { clientWireNames } from '../catalog/wire-names.ts'
import * as field from './fields.ts'
import { clientRow, setupShape, translationShape } from './live-shapes.ts'
import { operation } from './operation.ts'
import { wrongField } from './problem.ts'
import type { ModelRow } from './shapes.ts'

/* Operations for trying out a request, a translation, and the settings of an agent. */

const word = field.text('must be a text').optional()

const wire = z.enum(clientWireNames)

/** A field for JSON: a text, used unchanged, or an object, which is serialized and may spell numbers differently. */
export const json = (what: string) =>
  z
    .union([z.string(), z.record(z.string(), z.unknown())], { error: 'must be an object, or a text of JSON' })
    .transform((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .describe(`${what}: an object, or its JSON as a text, which is taken to the byte`)

export const workbenchOperations = [
  operation({
    id: 'playground',
    http: 'POST /playground',
    role: 'admin',
    isLarge: true,
    input: z.strictObject({
      account: field.account.describe('whose window and credit it uses, by name or id'),
      wire: wire.describe('which wire is spoken'),
      body: json('what a client of the wire would send'),
    }),
    output: z.unknown(),
    media: ['application/json', 'text/event-stream'],
    problems: ['not_found'],
    text: 'send a request as a client of an account would, but without a key: the answer is that of the wire, its errors too',
    async run({ books, running, requestId }, { account, wire, body }) {
      const { id, name, state } = await books.findAccount(account)
      const after = { request: requestId, wire, model: modelOf(body, running.listModels()) }
      await books.noteAct({ operation: 'playground', object: id, after })
      return { play: { account: { id, name, state }, wire, body } }
    },
  }),
  operation({
    id: 'translate',
    http: 'POST /translate',
    role: 'viewer',
    isLarge: true,
    input: z.strictObject({
      from: wire.describe('the wire of the client'),
      model: word.describe('a model of the catalog; default: the one that the request names'),
      upstream: word.describe('of several upstreams of the model the one that is asked; default: the first'),
      body: json('the request').optional(),
      answer: json('an answer of the model, a stream as text or JSON').optional(),
    }),
    output: translationShape,
    text: 'show what a model would be sent for a request, and what its client would see of an answer; nothing is sent',
    // The command line has a separate command, which reads files.
    asks: 'server',
    async run({ running }, { from, model, upstream, body, answer }) {
      if (body === undefined && answer === undefined) throw wrongField('body', 'must be there, or an answer')
      if (body === undefined && model === undefined) throw wrongField('model', 'must be there without a request')
      return { body: await running.translate({ from, model, upstream, body, answer }) }
    },
  }),
  operation({
    id: 'setup.list',
    http: 'GET /setup',
    role: 'owner',
    kind: 'list',
    output: clientRow,
    text: 'list the agents, editors and SDKs whose settings are known',
    asks: 'server',
    run: async ({ running }) => ({ items: await running.listClients() }),
  }),
  operation({
    id: 'setup.show',
    http: 'GET /setup/{client}',
    role: 'owner',
    input: z.strictObject({
      client: field.text('must be a text').describe('such as claude-code'),
      model: word.describe('default: of the family for its main work, else the first on a wire that it speaks'),
      wire: wire.optional().describe('default: that of the model where the client speaks it'),
      url: word.describe('where clients reach the gateway; default: `api_url`, else the address it listens on'),
    }),
    output: setupShape,
    problems: ['not_found'],
    text: 'tell what to set in an agent, editor or SDK, as `triwire setup` prints it',
    asks: 'server',
    async run({ running, who }, { client, model, wire, url }) {
      const models = who?.kind === 'owner' ? who.key.bounds.models : undefined
      return { body: await running.setUp(client, { model, wire, url, isOwner: who?.kind !== 'operator', models }) }
    },
  }),
]

/** Returns the model of a request for the audit if the catalog has it. Nothing else is recorded (ruling U5). */
function modelOf(body: string, models: readonly ModelRow[]): string | null {
  try {
    const { model } = JSON.parse(body) as { model?: unknown }
    const isKnown = models.some(({ id, also }) => id === model || also.some((name) => name === model))
    return isKnown ? (model as string) : null
  } catch {
    return null
  }
}
