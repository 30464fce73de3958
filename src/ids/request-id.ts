import { randomFillSync } from 'node:crypto'

/** The number of random bytes of an id: two hex digits each, but the last one gives two bits of the variant. */
const chanceBytes = 10

/** Random bytes for 128 ids, because the call for random bytes costs more than the rest. */
const drawn = Buffer.alloc(128 * chanceBytes)
let at = drawn.length
/** The time of the last id, and its digits. A busy server makes several ids per millisecond. */
let [lastMs, digits] = [0, '']

/** Makes a request id: `req_` and a UUIDv7 without dashes. The ledger's key, so it is unique forever (ruling R5). */
export function newRequestId(): string {
  if (at === drawn.length) {
    randomFillSync(drawn)
    at = 0
  }
  const chance = drawn.toString('hex', at, at + chanceBytes)
  const variant = '89ab'[drawn[at + chanceBytes - 1]! & 3]
  at += chanceBytes
  // Node's own function for UUIDv7 came with a release of Node 24 that is newer than the oldest supported one.
  const nowMs = Date.now()
  if (nowMs !== lastMs) [lastMs, digits] = [nowMs, nowMs.toString(16).padStart(12, '0')]
  return `req_${digits}7${chance.slice(0, 3)}${variant}${chance.slice(3, 18)}`
}
