import type { Edit, Range } from './json.ts'
import { type JsonLimits, type JsonMember, scanObject } from './scan.ts'

/**
 * Lists the members of an object inside a larger text that was already checked. Offsets count from the start of that
 * text.
 * @throws JsonError if the object has more members than the limits allow
 */
export function membersOf(bytes: Uint8Array, range: Range, limits?: JsonLimits): JsonMember[] {
  return scanObject(bytes.subarray(range.start, range.end), limits).map((member) => ({
    key: member.key,
    keyStart: member.keyStart + range.start,
    start: member.start + range.start,
    end: member.end + range.start,
  }))
}

/**
 * Makes the edits that give members of an object new values. Every occurrence of a key is changed. A missing key is
 * added at the end. A value of `undefined` removes the member and one comma.
 */
export function setMembers(
  range: Range,
  members: readonly JsonMember[],
  values: ReadonlyMap<string, string | undefined>,
): Edit[] {
  const edits: Edit[] = []
  let lastKept = members.length - 1
  while (lastKept >= 0 && isRemoved(members[lastKept]!.key)) lastKept--
  for (let i = 0; i < members.length; i++) {
    const member = members[i]!
    const value = values.get(member.key)
    if (value !== undefined) {
      edits.push({ start: member.start, end: member.end, text: value })
      continue
    }
    if (!isRemoved(member.key)) continue
    // The comma after the member is removed too. If all later members are removed as well, the comma before the member
    // is removed instead.
    if (i < lastKept) edits.push({ start: member.keyStart, end: members[i + 1]!.keyStart, text: '' })
    else edits.push({ start: i === 0 ? member.keyStart : members[i - 1]!.end, end: member.end, text: '' })
  }
  let added = ''
  for (const [key, value] of values) {
    if (value === undefined || members.some((member) => member.key === key)) continue
    added += `${added !== '' || lastKept >= 0 ? ',' : ''}${JSON.stringify(key)}:${value}`
  }
  if (added !== '') edits.push({ start: range.end - 1, end: range.end - 1, text: added })
  return edits

  function isRemoved(key: string): boolean {
    return values.get(key) === undefined && values.has(key)
  }
}

/** Lists the elements of an array. The text that contains the array must be valid JSON. */
export function elementsOf(bytes: Uint8Array, range: Range): Range[] {
  const elements: Range[] = []
  let depth = 0
  let start = -1
  for (let i = range.start + 1; i < range.end; i++) {
    const byte = bytes[i]!
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue
    if (byte === 0x5d && depth === 0) {
      if (start >= 0) elements.push({ start, end: trimEnd(bytes, i) })
      break
    }
    if (byte === 0x2c && depth === 0) {
      elements.push({ start, end: trimEnd(bytes, i) })
      start = -1
      continue
    }
    if (start < 0) start = i
    if (byte === 0x7b || byte === 0x5b) depth++
    else if (byte === 0x7d || byte === 0x5d) depth--
    else if (byte === 0x22) i = endOfString(bytes, i)
  }
  return elements
}

/** Makes the edits that remove elements of an array. Each edit also removes one comma. */
export function removeElements(elements: readonly Range[], isRemoved: (index: number) => boolean): Edit[] {
  const edits: Edit[] = []
  let lastKept = -1
  for (let i = 0; i < elements.length; i++) if (!isRemoved(i)) lastKept = i
  for (const [i, element] of elements.entries()) {
    if (!isRemoved(i)) continue
    if (i < lastKept) edits.push({ start: element.start, end: elements[i + 1]!.start, text: '' })
    else edits.push({ start: i === 0 ? element.start : elements[i - 1]!.end, end: element.end, text: '' })
  }
  return edits
}

function trimEnd(bytes: Uint8Array, end: number): number {
  let i = end
  while (bytes[i - 1] === 0x20 || bytes[i - 1] === 0x0a || bytes[i - 1] === 0x0d || bytes[i - 1] === 0x09) i--
  return i
}

/** The number of bytes up to which a loop is as fast as a native search. Most names and words are shorter. */
const walkedBytes = 24

/** Returns the index of the closing quote of the string that opens at `start`; -1 if the string is unfinished. */
export function endOfString(bytes: Uint8Array, start: number): number {
  for (let i = start + 1; i < start + walkedBytes; i++) {
    if (bytes[i] === 0x22) return i
    if (bytes[i] === 0x5c) break
  }
  for (let i = bytes.indexOf(0x22, start + 1); ; i = bytes.indexOf(0x22, i + 1)) {
    let slashes = 0
    while (bytes[i - 1 - slashes] === 0x5c) slashes++
    if (slashes % 2 === 0) return i
  }
}
