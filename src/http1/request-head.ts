import { canStandInHead, type Fields, readFields } from './fields.ts'

/** A client's request before its body. */
export type RequestHead = {
  method: string
  /** As it was sent: a path, a whole URL, or `*`. */
  target: string
  /** The minor version of HTTP/1. */
  minor: number
  fields: Fields
}

/** The longest method that is registered has 17 letters. */
const methodMax = 20
/** The request line. Its target is a path, a whole URL, `*`, or the host of CONNECT, without blanks and control characters. */
const line = new RegExp(`^([A-Z-]{1,${methodMax}}) ([/*A-Za-z0-9[][!-~]*) HTTP/1\\.([01])\\r\\n`)

/**
 * Reads a head (RFC 9112 3). @param text Latin-1, up to the end of its last field, with that line's end
 * @returns undefined if it is malformed
 */
export function readRequestHead(text: string): RequestHead | undefined {
  const match = line.exec(text)
  if (match === null) return undefined
  const [whole, method, target, minor] = match as unknown as [string, string, string, string]
  if (!isTarget(method, target)) return undefined
  const fields = readFields(text, whole.length)
  return fields && { method, target, minor: minor === '1' ? 1 : 0, fields }
}

/** Whether the target is a path, or one of the forms that only some methods may have (RFC 9112 3.2). */
function isTarget(method: string, target: string): boolean {
  if (target.startsWith('/')) return true
  if (method === 'CONNECT') return /:\d+$/.test(target)
  return target === '*' ? method === 'OPTIONS' : /^https?:\/\/[^/?#]/i.test(target)
}

/**
 * Whether an incomplete head can still become a complete one.
 * @param text Latin-1, the beginning of the head. @param from the offset of the first unchecked character
 */
export function mayBecomeHead(text: string, from: number): boolean {
  if (!canStandInHead(text, from)) return false
  // Half of an empty line, which may precede a head.
  if (text === '\r') return true
  const method = /^[A-Z-]*/.exec(text)![0].length
  return method <= methodMax && (method === text.length || (method > 0 && text[method] === ' '))
}
