import { z } from 'zod'
import * as field from './fields.ts'
import { operation } from './operation.ts'
import { ProblemError } from './problem.ts'
import { type SteeringWord, steerings } from './request-order.ts'
import { upstreamState } from './shapes.ts'

const texts: Record<SteeringWord, string> = {
  retry: 'let the next request try an upstream that is left alone',
  disable: 'send nothing more to an upstream, until it is enabled again or the server ends; what runs is finished',
  enable: 'end that an upstream was disabled',
}

const word = field.text('must be a text')

export const upstreamOperations = [
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
  ...steerings.map((steering) =>
    operation({
      id: `upstream.${steering}`,
      method: 'POST',
      path: `/upstreams/{upstream}/${steering}`,
      role: 'admin',
      kind: 'one',
      input: z.strictObject({
        upstream: word.describe('its name in the configuration'),
        account: word.optional().describe('only this account of it'),
        model: word.optional().describe('only for this model, by its id in the catalog'),
      }),
      output: z.object({ items: z.array(upstreamState) }),
      problems: ['not_found', 'store_unavailable'],
      text: texts[steering],
      cli: [
        {
          command: `upstream ${steering}`,
          arguments: ['upstream'],
          options: { account: '--account <name>', model: '--model <id>' },
        },
      ],
      asks: 'server',
      async run({ running, openBooks }, place) {
        const { upstream, account, model } = place
        const meant = (await running.listUpstreams()).filter(
          (row) =>
            row.upstream === upstream &&
            (account === undefined || row.account === account) &&
            (model === undefined || row.model === model),
        )
        if (meant.length === 0)
          throw new ProblemError('not_found', 'No model is served by an upstream with this name, account and model.')
        const after = { account: account ?? null, model: model ?? null }
        await (await openBooks()).noteAct({ operation: `upstream.${steering}`, object: upstream, after })
        return { body: { items: [...(await running.steer(steering, place))] } }
      },
    }),
  ),
]
