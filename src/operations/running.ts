import { z } from 'zod'
import { confirmOperation } from '../accounts/clock.ts'
import { when } from './fields.ts'
import { statusShape } from './live-shapes.ts'
import { operation } from './operation.ts'
import { modelRow } from './shapes.ts'

/* Operations on the state of the running gateway. */

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
    run: async ({ running }) => ({ body: await running.readStatus() }),
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
