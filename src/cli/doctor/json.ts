import { asObject } from '../../bytes/json.ts'

/*
 * Bodies of answers, which may be anything: a reader that finds nothing says so and does not throw.
 */

export type ProbeJson = Record<string, unknown>

export function join(parts: readonly ProbeJson[], field: string): string {
  return parts.map((part) => (typeof part[field] === 'string' ? part[field] : '')).join('')
}

export function list(value: unknown): ProbeJson[] {
  return Array.isArray(value)
    ? value.flatMap((one): ProbeJson[] => {
        const object = asObject(one)
        return object ? [object] : []
      })
    : []
}

export function count(value: unknown): number | undefined {
  return Number.isInteger(value) ? (value as number) : undefined
}

/** The sum of counters; undefined without the first, while others may be missing. */
export function sum(usage: ProbeJson, fields: readonly string[]): number | undefined {
  if (count(usage[fields[0]!]) === undefined) return undefined
  return fields.reduce((total, field) => total + (count(usage[field]) ?? 0), 0)
}

/** Of what is no JSON object nothing is made: what should have been in it is then missing. */
export function parse(text: string): ProbeJson {
  try {
    return asObject(JSON.parse(text)) ?? {}
  } catch {
    return {}
  }
}
