import assert from 'node:assert/strict'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { createThrottle, createWindows } from '../../src/accounts/limits.ts'
import { type ApiParts, createApi } from '../../src/admin/api.ts'
import { createAdmin } from '../../src/admin/listener.ts'
import { Bodies } from '../../src/gateway/fairness/places.ts'
import { listen } from '../support/listen.ts'

type Parts = Parameters<typeof createAdmin>[0]

/** An admin listener of a few handlers, without a gateway. @returns its URL, for plain HTTP */
export async function startBareAdmin(parts: Partial<Parts>): Promise<string> {
  const nothing = async () => undefined
  const bare: Parts = {
    isReady: async () => true,
    api: nothing,
    metrics: nothing,
    pages: nothing,
    reportBug: assert.ifError,
  }
  return `http://127.0.0.1:${await listen(createAdmin({ ...bare, ...parts }))}`
}

const minute = { windowMs: 60_000, clockMs: () => 0 }

/** The API without a gateway and without limits on requests. */
export function createBareApi(parts: Partial<ApiParts>) {
  return createApi({
    books: async () => assert.fail('the books are opened'),
    running: { hasForeignKeys: () => false } as never,
    rates: createWindows({ limit: 999, ...minute }),
    throttle: createThrottle({ limit: 999, ...minute }),
    ownerRates: createWindows({ limit: 999, ...minute }),
    bodies: new Bodies(0),
    turns: { take: async () => {} },
    reportBug: assert.ifError,
    nowMs: () => 0,
    peerOf: (peer) => peer,
    calendar: createCalendar(utc),
    version: '0',
    play: () => {},
    bodyBytesMax: () => 1_000,
    ...parts,
  })
}
