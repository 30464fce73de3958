import type { RawJson } from './json.ts'

/** JSON text that is written as it stands (ruling T16). */
export class Verbatim {
  readonly source: string
  constructor(source: string) {
    this.source = source
  }
}

export function verbatim(raw: RawJson): Verbatim {
  return new Verbatim(raw.source)
}

/**
 * JSON of a body that an encoder has built, keys in the order they were set, members that are undefined left out. It
 * descends only what we have built, a few levels; what a client wrote is a string or a Verbatim.
 */
export function writeJson(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (value instanceof Verbatim) return value.source
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  let text = ''
  if (Array.isArray(value)) {
    for (const entry of value) text += `${text && ','}${writeJson(entry)}`
    return `[${text}]`
  }
  for (const [key, member] of Object.entries(value)) {
    if (member !== undefined) text += `${text && ','}${JSON.stringify(key)}:${writeJson(member)}`
  }
  return `{${text}}`
}
