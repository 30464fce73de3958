import { randomFillSync } from 'node:crypto'

/** The random bytes of an id, two hex digits each. The last byte also gives the variant two bits. */
const chanceBytes = 10

/** Random bytes for many ids at once, because the call for them costs more than the rest. */
const drawn = Buffer.alloc(128 * chanceBytes)
let at = drawn.length
/** The time of the last id and its digits: a busy server makes many in a millisecond. */
let [lastMs, digits] = [0, '']

/** Makes a request id: `req_` and a UUIDv7 without dashes. It is unique for ever, because it is the ledger's key (ruling R5). */
export function newRequestId(): string {
  if (at === drawn.length) {
    randomFillSync(drawn)
    at = 0
  }
  const chance = drawn.toString('hex', at, at + chanceBytes)
  const variant = '89ab'[drawn[at + chanceBytes - 1]! & 3]
  at += chanceBytes
  // Node's own function for this is in a release of 24 that is newer than the oldest one we support.
  const nowMs = Date.now()
  if (nowMs !== lastMs) [lastMs, digits] = [nowMs, nowMs.toString(16).padStart(12, '0')]
  return `req_${digits}7${chance.slice(0, 3)}${variant}${chance.slice(3, 18)}`
}
