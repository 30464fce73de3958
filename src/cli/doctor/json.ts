import { asObject } from '../../bytes/json.ts'

/*
 * Reads bodies of answers, which may be anything. A reader that does not find its value returns undefined and never throws.
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

/** Returns the sum of counters; undefined without the first one. Others may be missing. */
export function sum(usage: ProbeJson, fields: readonly string[]): number | undefined {
  if (count(usage[fields[0]!]) === undefined) return undefined
  return fields.reduce((total, field) => total + (count(usage[field]) ?? 0), 0)
}

/** Returns an empty object for text that is not a JSON object, so that its members are then reported as missing. */
export function parse(text: string): ProbeJson {
  try {
    return asObject(JSON.parse(text)) ?? {}
  } catch {
    return {}
  }
}
