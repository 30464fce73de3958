import type { Json } from './case.ts'

/* Readers of JSON that may be anything. One that does not find its value returns something empty and never throws. */

export type JsonObject = { [name: string]: Json }

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {}
}

/** Returns the objects of a list. */
export function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

export function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

export function countOf(value: Json | undefined): number | undefined {
  return Number.isInteger(value) ? (value as number) : undefined
}

export function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** Leaves out the members that are undefined. */
export function compact<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T
}
