import { z } from 'zod'
import * as field from './fields.ts'
import { operation } from './operation.ts'
import { ProblemError } from './problem.ts'
import { explanation, modelRow, upstreamState } from './shapes.ts'

/* What the running gateway knows. */

export const runningOperations = [
  operation({
    id: 'model.list',
    method: 'GET',
    path: '/models',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject({}),
    output: modelRow,
    problems: [],
    text: 'list the models that clients can name',
    cli: [{ command: 'models', rows: 'all' }],
    asks: 'configuration',
    run: async ({ running }) => ({ items: running.listModels() }),
  }),
  operation({
    id: 'upstream.list',
    method: 'GET',
    path: '/upstreams',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject({}),
    output: upstreamState,
    problems: [],
    text: 'show how each upstream account is: ready, or left alone for what and how long',
    cli: [{ command: 'upstreams', rows: 'all' }],
    asks: 'server',
    run: async ({ running }) => ({ items: await running.listUpstreams() }),
  }),
  operation({
    id: 'request.explain',
    method: 'GET',
    path: '/requests/{request}/explain',
    role: 'viewer',
    kind: 'one',
    input: z.strictObject({
      request: field
        .text('must be a request id')
        .regex(/^[\w-]{1,100}$/, { error: 'is no request id: it stands in x-request-id of the answer, such as req_…' }),
    }),
    output: explanation,
    problems: ['not_found', 'store_unavailable'],
    text: 'tell why a request was answered as it was: attempts, losses, usage, price, settlement',
    cli: [{ command: 'explain', arguments: ['request'] }],
    asks: 'server',
    async run({ running }, { request }) {
      const found = await running.explain(request)
      if (found === 'unknown') throw new ProblemError('not_found', 'Neither memory nor ledger has such a request.')
      if (found === 'silent') throw new ProblemError('store_unavailable', 'The ledger cannot be read now: try again.')
      return { body: found }
    },
  }),
]
