import { randomFillSync } from 'node:crypto'

/** A new id's chance, in bytes: two hex digits each, of which the last one gives the variant two bits. */
const chanceBytes = 10

/** Drawn for many ids at once: a draw costs more than what becomes of it. */
const drawn = Buffer.alloc(128 * chanceBytes)
let at = drawn.length

/** A request id: `req_` and a UUIDv7 without dashes, unique for ever, since it is the ledger's key (ruling R5). */
export function newRequestId(): string {
  if (at === drawn.length) {
    randomFillSync(drawn)
    at = 0
  }
  const chance = drawn.toString('hex', at, at + chanceBytes)
  const variant = '89ab'[drawn[at + chanceBytes - 1]! & 3]
  at += chanceBytes
  // Node's own has come with a release of 24 that is younger than the oldest we run on.
  return `req_${Date.now().toString(16).padStart(12, '0')}7${chance.slice(0, 3)}${variant}${chance.slice(3, 18)}`
}
