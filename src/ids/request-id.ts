import { randomUUIDv7 } from 'node:crypto'

/** A request id: `req_` and a UUIDv7 without dashes, unique for ever, since it is the ledger's key (ruling R5). */
export function newRequestId(): string {
  return `req_${randomUUIDv7().replaceAll('-', '')}`
}
