import { randomBytes } from 'node:crypto'
import { type RawJson, spliceText } from './json.ts'
import { placesOf } from './search.ts'

/** Random in every process, so that no object from a client can look like it. */
const mark = `_verbatim-${randomBytes(9).toString('base64url')}`

/** The text that JSON.stringify makes of a `Verbatim`. The same text inside a string would have escaped quotes. */
const standIn = `{"${mark}":0}`

/** JSON text that is written as it is (ruling T16). */
export class Verbatim {
  readonly #source: string
  constructor(source: string) {
    this.#source = source
    // The member must be public, because JSON.stringify ignores private ones.
    const members = this as unknown as Record<string, number>
    members[mark] = 0
  }
  get source(): string {
    return this.#source
  }
}

export function verbatim(raw: RawJson): Verbatim {
  return new Verbatim(raw.source)
}

/**
 * Writes a body as JSON: keys in the order they were set, without undefined members. JSON.stringify writes all of it at once,
 * with stand-ins for verbatim parts, which are then replaced. Its own hook would cost a call for each member.
 */
export function writeJson(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null'
  const places = [...placesOf(text, standIn)]
  if (places.length === 0) return text
  const sources: string[] = []
  gatherSources(value, sources)
  const edits = places.map((start, i) => ({ start, end: start + standIn.length, text: sources[i]! }))
  return spliceText(text, edits)
}

/** Collects the verbatim parts in the order in which JSON.stringify visits them. */
function gatherSources(value: unknown, sources: string[]): void {
  if (typeof value !== 'object' || value === null) return
  if (value instanceof Verbatim) sources.push(value.source)
  else if (Array.isArray(value)) for (const entry of value) gatherSources(entry, sources)
  else for (const key in value) gatherSources((value as Record<string, unknown>)[key], sources)
}
