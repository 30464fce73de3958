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
 * descends only where something stands verbatim, a few levels; all else is written natively, which is three times as fast.
 */
export function writeJson(value: unknown): string {
  if (value instanceof Verbatim) return value.source
  if (!holdsVerbatim(value)) return JSON.stringify(value) ?? 'null'
  let text = ''
  if (Array.isArray(value)) {
    for (const entry of value) text += `${text && ','}${writeJson(entry)}`
    return `[${text}]`
  }
  for (const [key, member] of Object.entries(value as object)) {
    if (member !== undefined) text += `${text && ','}${JSON.stringify(key)}:${writeJson(member)}`
  }
  return `{${text}}`
}

function holdsVerbatim(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (value instanceof Verbatim) return true
  if (Array.isArray(value)) return value.some(holdsVerbatim)
  for (const key in value) if (holdsVerbatim((value as Record<string, unknown>)[key])) return true
  return false
}
