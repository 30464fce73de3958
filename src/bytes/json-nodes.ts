import type { Range } from './json.ts'
import { endOfString } from './json-edit.ts'

/**
 * A JSON value with all nested values, as ranges of a valid text. Repeated members are all listed. Strings are not
 * decoded.
 */
export type JsonNode = Range & { members?: (JsonNode & { key: string })[]; items?: JsonNode[] }

/** Reads one value with all nested values. @param range the value; a scan has checked how deeply it is nested */
export function readNodes(bytes: Buffer, range: Range): JsonNode {
  let at = range.start
  return readValue()

  function readValue(): JsonNode {
    const start = at
    if (bytes[at] === 0x7b) return { members: readAll(0x7d, readMember), start, end: at }
    if (bytes[at] === 0x5b) return { items: readAll(0x5d, readValue), start, end: at }
    if (bytes[at] === 0x22) at = endOfString(bytes, at) + 1
    else while (at < range.end && !isBetween(bytes[at]!) && bytes[at] !== 0x7d && bytes[at] !== 0x5d) at++
    return { start, end: at }
  }

  function readMember(): JsonNode & { key: string } {
    const keyStart = at
    at = endOfString(bytes, at) + 1
    const text = bytes.toString('utf8', keyStart, at)
    while (isBetween(bytes[at]!)) at++
    return Object.assign(readValue(), { key: text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1) })
  }

  function readAll<Part>(close: number, read: () => Part): Part[] {
    const parts: Part[] = []
    for (at++; ; ) {
      while (isBetween(bytes[at]!)) at++
      if (bytes[at] === close) break
      parts.push(read())
    }
    at++
    return parts
  }
}

/** Returns all values of a member, in the order of the text. */
export function valuesOf({ members = [] }: JsonNode, key: string): JsonNode[] {
  return members.filter((member) => member.key === key)
}

/** Whether a byte is white space, a comma or a colon. */
function isBetween(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09 || byte === 0x2c || byte === 0x3a
}
