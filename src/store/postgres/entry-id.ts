import { sha256Hex } from '../../ids/digest.ts'
import { newRequestId } from '../../ids/request-id.ts'

/**
 * The key of a request's debit in the ledger: the UUID of the request id, which contains the month of its making. A request
 * id of any other form gets a UUID that begins with `f`, which is no month before the year 10,000.
 */
export function entryIdOf(requestId: string): string {
  const [, hex] = /^req_([0-9a-f]{32})$/.exec(requestId) ?? []
  return hex ?? `f${sha256Hex(requestId).slice(1, 32)}`
}

/** For an entry that is no request's. */
export function newEntryId(): string {
  return newRequestId().slice('req_'.length)
}
