import { sha256Hex } from '../../ids/digest.ts'
import type { Transaction } from './database.ts'

/** A function in the database. Its name has the digest of its text in it, so that two versions of us run side by side. */
export type SqlFunction = {
  /** To be called by, with the schema. */
  name: string
  create: string
}

/** @param parts everything of CREATE FUNCTION after the name: parameters, result, language, body. */
export function defineFunction(name: string, parts: string): SqlFunction {
  const unique = `triwire.${name}_${sha256Hex(parts).slice(0, 10)}`
  return { name: unique, create: `CREATE FUNCTION ${unique}${parts}` }
}

/** Makes those that are missing. Under the lock of `migrate`, since two who make the same one fail. */
export async function installFunctions({ query }: Transaction, functions: readonly SqlFunction[]): Promise<void> {
  const rows = await query(
    `SELECT 'triwire.' || proname AS name FROM pg_proc WHERE pronamespace = 'triwire'::regnamespace`,
  )
  const there = new Set(rows.map(({ name }) => name))
  for (const { name, create } of functions) if (!there.has(name)) await query(create)
}
