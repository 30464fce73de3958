import { type Fields, readFields } from './fields.ts'

/** A server's response before its body. */
export type ResponseHead = {
  status: number
  /** The minor version of HTTP/1. */
  minor: number
  fields: Fields
}

/** The status line. The words after the status mean nothing, and some servers leave them out together with the blank. */
const line = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t -~\x80-\xff]*)?\r\n/

/**
 * Reads a head (RFC 9112 4). @param text Latin-1, up to the end of its last field, with that line's end
 * @returns undefined if it is malformed
 */
export function readResponseHead(text: string): ResponseHead | undefined {
  const match = line.exec(text)
  if (match === null) return undefined
  const [whole, minor, status] = match as unknown as [string, string, string]
  const fields = readFields(text, whole.length)
  return fields && { status: Number(status), minor: minor === '1' ? 1 : 0, fields }
}
