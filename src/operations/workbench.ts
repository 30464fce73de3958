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

/** A field for JSON. A text is used unchanged. An object is serialized, which may change how numbers are written. */
export const json = (what: string) =>
  z
    .union([z.string(), z.record(z.string(), z.unknown())], { error: 'must be an object, or a text of JSON' })
    .transform((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .describe(`${what}: an object, or a text with its JSON, which is used unchanged`)

export const workbenchOperations = [
  operation({
    id: 'playground',
    http: 'POST /playground',
    role: 'admin',
    isLarge: true,
    input: z.strictObject({
      account: field.account.describe('the account whose credit and rate limit the request uses, by name or id'),
      wire: wire.describe('the wire of the request'),
      body: json('the body of the request, in the form of the wire'),
    }),
    output: z.unknown(),
    media: ['application/json', 'text/event-stream'],
    problems: ['not_found'],
    text: 'send a request that an account pays for, without a key of the account; the answer and its errors have the form of the wire',
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
      from: wire.describe('the wire that the client speaks'),
      model: word.describe('a model of the catalog; default: the model that the request names'),
      upstream: word.describe('the upstream that is asked, if the model has several; default: the first'),
      body: json('the request').optional(),
      answer: json('an answer')
        .optional()
        .describe('an answer of the model: an object, or a text with its JSON or its stream'),
    }),
    output: translationShape,
    text: 'show what would be sent to a model for a request, and what the client would get for an answer; nothing is sent',
    // The command `translate` is defined separately, because it reads files (src/cli/translate.ts).
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
    text: 'list the agents, editors and SDKs for which triwire knows the settings',
    asks: 'server',
    run: async ({ running }) => ({ items: await running.listClients() }),
  }),
  operation({
    id: 'setup.show',
    http: 'GET /setup/{client}',
    role: 'owner',
    input: z.strictObject({
      client: field.text('must be a text').describe('the agent, editor or SDK, such as claude-code'),
      model: word.describe(
        'the model; default: a model of the family that the client is made for, or else the first on a wire that it speaks',
      ),
      wire: wire.optional().describe('the wire; default: the wire of the model, if the client speaks it'),
      url: word.describe(
        'where clients reach the gateway; default: the setting `api_url`, or else the listening address',
      ),
    }),
    output: setupShape,
    problems: ['not_found'],
    text: 'show the settings for an agent, editor or SDK, as `triwire setup` prints them',
    asks: 'server',
    async run({ running, who }, { client, model, wire, url }) {
      const models = who?.kind === 'owner' ? who.key.bounds.models : undefined
      return { body: await running.setUp(client, { model, wire, url, isOwner: who?.kind !== 'operator', models }) }
    },
  }),
]

/**
 * Returns the model that a request names, for the audit. Any text that is not a model of the catalog becomes null
 * (ruling U5).
 */
function modelOf(body: string, models: readonly ModelRow[]): string | null {
  try {
    const { model } = JSON.parse(body) as { model?: unknown }
    const isKnown = models.some(({ id, also }) => id === model || also.some((name) => name === model))
    return isKnown ? (model as string) : null
  } catch {
    return null
  }
}
