import type { Flow } from './fairness/places.ts'

/*
 * A provider's error may repeat the request. Such parts are removed, because operators must see nothing of a request
 * (rulings U5, CON-4).
 */

/** A run of at least this many characters that also occurs in the request is an echo. */
const runCharacters = 20

/** The largest request that is searched, in bytes. One pass over a request of this size takes 4 ms. */
const requestBytesMax = 262_144

const omitted = '…'

/**
 * The ways to read a request before it is searched. `json` leaves the text as it is; the other three decode JSON
 * escapes. `scrubbed` also replaces several control characters in a row with one blank, as `scrub` does. `collapsed`
 * also replaces several blanks in a row with one blank.
 */
type Reading = 'json' | 'strings' | 'scrubbed' | 'collapsed'

/**
 * Replaces each part of a text that also occurs in a request and has 20 characters or more. A provider may repeat the
 * request in any form of `Reading`.
 * @param text the result of `scrub`, of at most 400 characters
 * @param flow `searchable` is the number of bytes that may still be searched in this turn of the ticker
 * @returns undefined if the request is too large, or if the bytes of this turn are used up
 */
export function withoutEchoes(text: string, request: Buffer, flow: Pick<Flow, 'searchable'>): string | undefined {
  if (text.length < runCharacters) return text
  if (request.length > requestBytesMax || flow.searchable <= 0) return undefined
  const isEcho = new Uint8Array(text.length)
  const body = request.toString('utf8')
  const markEchoes = (searched: string, reading: Reading, isEscaped = false) => {
    flow.searchable -= request.length
    markRuns(text, searched, reading, isEcho, isEscaped)
  }
  markEchoes(body, 'collapsed')
  // Escapes may hide an echo from the search above. So a text with a backslash is also compared in other ways.
  if (text.includes('\\')) {
    markEchoes(body, 'json')
    for (const reading of ['collapsed', 'strings', 'scrubbed'] as const) markEchoes(body, reading, true)
  }
  // JSON inside a string, such as the arguments of a tool call, has its own escapes. They are decoded here.
  if (body.includes('\\\\')) markEchoes(body.replace(/\\([\\"/])/g, '$1'), 'collapsed')
  if (/\s\s/.test(text)) for (const reading of ['strings', 'scrubbed'] as const) markEchoes(body, reading)
  let shown = ''
  for (let at = 0; at < text.length; at++) {
    if (!isEcho[at]) shown += text[at]
    else if (!isEcho[at - 1]) shown += omitted
  }
  return shown
}

const base = 0x01000193
let top = 1
for (let at = 1; at < runCharacters; at++) top = Math.imul(top, base)

/**
 * Looks for all runs (20 characters in a row) of the text at once, by rolling hashes (Rabin and Karp).
 * @param isEscaped whether to decode escapes in the text as well, because many servers escape what they quote
 */
function markRuns(text: string, body: string, reading: Reading, isEcho: Uint8Array, isEscaped: boolean): void {
  const { codes, places } = readText(text, reading === 'collapsed', isEscaped)
  const runs = new Map<number, number[]>()
  const isKnown = new Uint8Array(65_536)
  for (let start = 0; start + runCharacters <= codes.length; start++) {
    let hash = 0
    for (let at = start; at < start + runCharacters; at++) hash = (Math.imul(hash, base) + codes[at]!) | 0
    const same = runs.get(hash)
    if (same) same.push(start)
    else runs.set(hash, [start])
    isKnown[hash >>> 16] = 1
  }
  // The 32 characters that were read most recently.
  const ring = new Uint16Array(32)
  let [hash, count, wasControl] = [0, 0, false]
  for (let at = 0; at < body.length; ) {
    let code = body.charCodeAt(at++)
    if (code === 0x5c && reading !== 'json') {
      code = body.charCodeAt(at++)
      if (code === 0x75) {
        code = Number.parseInt(body.slice(at, at + 4), 16)
        at += 4
      } else if (code !== 0x22 && code !== 0x5c && code !== 0x2f) code = 0x0a
    }
    const isControl = code < 0x20 || isOtherControl(code)
    if (isControl || code === 0xa0) code = 0x20
    if (code === 0x20) {
      const wasBlank =
        reading === 'collapsed' ? ring[(count - 1) & 31] === 0x20 : reading === 'scrubbed' && wasControl && isControl
      if (wasBlank) continue
    }
    wasControl = isControl
    if (count >= runCharacters) hash = (hash - Math.imul(ring[(count - runCharacters) & 31]!, top)) | 0
    hash = (Math.imul(hash, base) + code) | 0
    ring[count++ & 31] = code
    if (isKnown[hash >>> 16] === 0 || count < runCharacters) continue
    const starts = runs.get(hash)
    if (!starts || !isRun(codes, starts[0]!, ring, count)) continue
    // A run is not searched for after its first match. So a million repetitions take no longer than other text.
    runs.delete(hash)
    for (const start of starts) isEcho.fill(1, places[start], places[start + runCharacters])
  }
}

function isRun(codes: readonly number[], start: number, ring: Uint16Array, count: number): boolean {
  for (let i = 0; i < runCharacters; i++) if (codes[start + i] !== ring[(count - runCharacters + i) & 31]) return false
  return true
}

/** Whether `scrub` replaces the character with a blank. The callers check the characters below 32 themselves. */
function isOtherControl(code: number): boolean {
  return (code >= 0x7f && code < 0xa0) || code === 0x2028 || code === 0x2029
}

/** Prepares a text for the search in a request. @returns the characters to compare, and their places in the text */
function readText(text: string, collapses: boolean, isEscaped: boolean): { codes: number[]; places: number[] } {
  const codes: number[] = []
  const places: number[] = []
  for (const { 0: read, index } of text.matchAll(isEscaped ? escapedCharacter : anyCharacter)) {
    let code = read.length === 1 ? read.charCodeAt(0) : codeOfEscape(read)
    if (code < 0x20 || code === 0xa0 || isOtherControl(code)) code = 0x20
    if (collapses && code === 0x20 && codes.at(-1) === 0x20) continue
    codes.push(code)
    places.push(index)
  }
  places.push(text.length)
  return { codes, places }
}

const anyCharacter = /[\s\S]/g
const escapedCharacter = /\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\s\S])|[\s\S]/g

/** Returns the code of the character that an escape (`\"`, `\u00e9`) means. For `\n` and the like, it is a blank. */
function codeOfEscape(sequence: string): number {
  if (sequence.length > 2) return Number.parseInt(sequence.slice(2), 16)
  return 'bfnrt'.includes(sequence[1]!) ? 0x20 : sequence.charCodeAt(1)
}
