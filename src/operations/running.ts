import { z } from 'zod'
import type { Books } from '../accounts/books.ts'
import { confirmOperation } from '../accounts/clock.ts'
import { type FoldProgress, isFolding } from '../accounts/usage/question.ts'
import { when } from './fields.ts'
import { statusShape } from './live-shapes.ts'
import { operation } from './operation.ts'
import { modelRow } from './shapes.ts'

/* Operations on the state of the running gateway. */

/** A store that cannot be read so quickly keeps no status waiting, in ms. */
const foldingMs = 1_000

async function readFoldingSoon(openBooks: () => Promise<Books>): Promise<FoldProgress | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), foldingMs)
  })
  const reading = openBooks().then((books) => books.readFolding())
  const progress = await Promise.race([reading.catch(() => undefined), late])
  clearTimeout(timer)
  return progress
}

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
    id: 'status',
    method: 'GET',
    path: '/status',
    role: 'viewer',
    kind: 'one',
    input: z.strictObject({}),
    output: statusShape,
    problems: [],
    text: 'tell how the server is: version, readiness, ledger, load',
    cli: [{ command: 'status' }],
    asks: 'server',
    async run({ running, openBooks }) {
      const [status, progress] = await Promise.all([running.readStatus(), readFoldingSoon(openBooks)])
      return { body: { ...status, ...(progress && isFolding(progress) && { folding: progress }) } }
    },
  }),
  operation({
    id: confirmOperation,
    method: 'POST',
    path: '/clock/confirm',
    role: 'admin',
    kind: 'one',
    input: z.strictObject({}),
    output: z.object({ time: when.describe('what the clock that dates entries shows') }),
    problems: [],
    text: 'say that the clock which dates entries is right, until it moves again: for one that is in doubt',
    cli: [{ command: 'clock confirm' }],
    run: async ({ books }) => ({ body: await books.confirmClock() }),
  }),
  operation({
    id: 'events',
    method: 'GET',
    path: '/events',
    role: 'viewer',
    kind: 'one',
    input: z.strictObject({}),
    output: z.string(),
    media: ['text/event-stream'],
    problems: [],
    text: 'tell what happens from now on, as server-sent events: requests, upstreams, accounts, and sums each second',
    cli: [],
    asks: 'server',
    isOfAll: true,
    run: async ({ running, lastEventId }) => ({ events: running.watch(lastEventId) }),
  }),
]
