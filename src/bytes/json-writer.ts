import { randomBytes } from 'node:crypto'
import { type RawJson, spliceText } from './json.ts'
import { placesOf } from './search.ts'

/** Drawn anew by every process, so that no object of a client's can pass for one. */
const mark = `_verbatim-${randomBytes(9).toString('base64url')}`

/** The text that JSON.stringify makes of a `Verbatim`. Within a string its quotes would be escaped. */
const standIn = `{"${mark}":0}`

/** JSON text that is written as it stands (ruling T16). */
export class Verbatim {
  readonly #source: string
  constructor(source: string) {
    this.#source = source
    // Its only member: of a private one JSON.stringify knows nothing.
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
 * JSON of a body that an encoder has built, keys in the order they were set, members that are undefined left out. All is written
 * natively at once, with stand-ins for what stands verbatim: to descend to that takes a call for each member on the way.
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

/** In the order in which JSON.stringify comes to them. */
function gatherSources(value: unknown, sources: string[]): void {
  if (typeof value !== 'object' || value === null) return
  if (value instanceof Verbatim) sources.push(value.source)
  else if (Array.isArray(value)) for (const entry of value) gatherSources(entry, sources)
  else for (const key in value) gatherSources((value as Record<string, unknown>)[key], sources)
}
