import { randomFillSync } from 'node:crypto'

/** Random bytes in an id. Each gives two hex digits, except the last, which gives two bits of the variant. */
const chanceBytes = 10

/** Random bytes for 128 ids. They are drawn together, because drawing costs more than the rest of an id. */
const drawn = Buffer.alloc(128 * chanceBytes)
let at = drawn.length
/** The time of the last id, and its digits. A busy server makes several ids per millisecond. */
let [lastMs, digits] = [0, '']

/** Makes a request id: `req_` and a UUIDv7 without dashes. It is unique forever, and the ledger's key (ruling R5). */
export function newRequestId(): string {
  if (at === drawn.length) {
    randomFillSync(drawn)
    at = 0
  }
  const chance = drawn.toString('hex', at, at + chanceBytes)
  const variant = '89ab'[drawn[at + chanceBytes - 1]! & 3]
  at += chanceBytes
  // Node's own function for UUIDv7 is newer than the oldest supported release of Node 24.
  const nowMs = Date.now()
  if (nowMs !== lastMs) [lastMs, digits] = [nowMs, nowMs.toString(16).padStart(12, '0')]
  return `req_${digits}7${chance.slice(0, 3)}${variant}${chance.slice(3, 18)}`
}
