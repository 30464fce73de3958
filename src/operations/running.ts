import { z } from 'zod'
import type { Books } from '../accounts/books.ts'
import { confirmOperation } from '../accounts/clock.ts'
import { formatCredits } from '../accounts/credit.ts'
import type { OperatorRole } from '../accounts/operators.ts'
import type { Principal } from '../accounts/principals.ts'
import { type FoldProgress, isFolding } from '../accounts/usage/question.ts'
import { webhookEvents } from '../accounts/warnings.ts'
import * as field from './fields.ts'
import { needShape, statusShape } from './live-shapes.ts'
import { needsFor } from './needs.ts'
import { awayOf, operation } from './operation.ts'
import { ProblemError } from './problem.ts'
import { type SteeringWord, steerings } from './rows.ts'
import { modelRow, upstreamState } from './shapes.ts'

/* Operations on the state of the running gateway. */

/** How long a status waits for the store, in ms. If the store does not respond, the status lacks `folding`. */
const foldingMs = 1_000

type BooksState = { progress?: FoldProgress; away?: string[] | undefined }

async function readBooksSoon(openBooks: () => Promise<Books>): Promise<BooksState> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<BooksState>((resolve) => {
    timer = setTimeout(() => resolve({}), foldingMs)
  })
  const read = async () => {
    const books = await openBooks()
    return { progress: await books.readFolding(), away: await awayOf(books, {}) }
  }
  const state = await Promise.race([read().catch(() => ({})), late])
  clearTimeout(timer)
  return state
}

const texts: Record<SteeringWord, string> = {
  retry: 'end the cooldown of an upstream that failed, so that the next request may use it',
  disable:
    'send no new requests to an upstream until it is enabled again or the server ends; running requests continue',
  enable: 'enable an upstream that was disabled',
}

function roleOf(who: Principal | undefined): OperatorRole | undefined {
  return who?.kind === 'operator' ? who.role : undefined
}

const word = field.text('must be a text')

const telling = field.named('WebhookSend', {
  at: field.when,
  result: z.string().describe('`ok`, or the cause of the failure'),
})

const webhookRow = field.named('Webhook', {
  url: z.string().describe('the URL without query and fragment, which may be secret'),
  events: z.array(z.enum(webhookEvents)),
  below: field.amount.nullable().describe('the balance below which `credit_low` is sent'),
  last: telling.nullable().describe('the last message that this process sent'),
  pending: z.number().describe('messages of this process that failed and will be sent again'),
  told: z.number().describe('messages of this process that were accepted since its start'),
  failed: z.number().describe('failed attempts of this process since its start'),
  last_failure: telling.nullable(),
})

export type WebhookRow = z.output<typeof webhookRow>

export const runningOperations = [
  operation({
    id: 'model.list',
    http: 'GET /models',
    role: 'reader',
    kind: 'list',
    output: modelRow,
    text: 'list the models that clients can use',
    cli: [{ command: 'models', rows: 'all' }],
    asks: 'configuration',
    run: async ({ running }) => ({ items: running.listModels() }),
  }),
  operation({
    id: 'status',
    http: 'GET /status',
    role: 'reader',
    output: statusShape,
    text: 'show the state of the server: version, readiness, ledger and load',
    cli: [{ command: 'status' }],
    asks: 'server',
    async run({ running, openBooks, who }) {
      const [status, { progress, away }, needs] = await Promise.all([
        running.readStatus(),
        readBooksSoon(openBooks),
        running.listNeeds(),
      ])
      const folding = progress && isFolding(progress) && { folding: progress }
      const reporting = away && { reporting: { ...status.reporting, away } }
      return { body: { ...status, ...reporting, ...folding, needs: needsFor(roleOf(who), needs) } }
    },
  }),
  operation({
    id: 'needs',
    http: 'GET /needs',
    role: 'reader',
    kind: 'list',
    output: needShape,
    text: 'list what an operator should do now, the most urgent first',
    cli: [{ command: 'needs', rows: 'all' }],
    asks: 'server',
    isOfAll: true,
    run: async ({ running, who }) => ({ items: needsFor(roleOf(who), await running.listNeeds()) }),
  }),
  operation({
    id: confirmOperation,
    http: 'POST /clock/confirm',
    role: 'admin',
    output: z.object({ time: field.when.describe('the time of the clock that dates entries') }),
    text: 'confirm that the clock which dates ledger entries is right, if the gateway doubts it; the confirmation is valid until the clock jumps again',
    cli: [{ command: 'clock confirm' }],
    run: async ({ books }) => ({ body: await books.confirmClock() }),
  }),
  operation({
    id: 'events',
    http: 'GET /events',
    role: 'viewer',
    output: z.string(),
    media: ['text/event-stream'],
    text: 'stream what happens from now on, as server-sent events: requests, upstreams, accounts, and sums each second',
    asks: 'server',
    isOfAll: true,
    run: async ({ running, lastEventId }) => ({ events: running.watch(lastEventId) }),
  }),
  operation({
    id: 'upstream.list',
    http: 'GET /upstreams',
    role: 'viewer',
    kind: 'list',
    output: upstreamState,
    text: 'show the state of each upstream account; if an account is not used, also show why and for how long',
    cli: [{ command: 'upstreams', rows: 'all' }],
    asks: 'server',
    run: async ({ running }) => ({ items: await running.listUpstreams() }),
  }),
  ...steerings.map((steering) =>
    operation({
      id: `upstream.${steering}`,
      http: `POST /upstreams/{upstream}/${steering}`,
      role: 'admin',
      input: z.strictObject({
        upstream: word.describe('the name of the upstream in the configuration'),
        account: word.optional().describe('only this account of the upstream'),
        model: word.optional().describe('only requests for this model, by its id in the catalog'),
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

/**
 * The operations on webhooks. The list is separate, because `table.ts` puts these operations after the operations on
 * requests.
 */
export const webhookOperations = [
  operation({
    id: 'webhook.list',
    http: 'GET /webhooks',
    role: 'viewer',
    kind: 'list',
    output: webhookRow,
    text: 'list the webhooks of the configuration, each with the result of its last message',
    cli: [{ command: 'webhooks', rows: 'all' }],
    asks: 'server',
    async run({ running }) {
      const states = await running.listWebhooks()
      return {
        items: states.map(({ below_nanos, last, last_failure, ...state }) => ({
          ...state,
          below: below_nanos === undefined ? null : formatCredits(below_nanos),
          last: last ?? null,
          last_failure: last_failure ?? null,
        })),
      }
    },
  }),
]
