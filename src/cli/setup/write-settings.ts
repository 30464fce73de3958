import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { asObject } from '../../bytes/json.ts'

/**
 * Puts settings into a program's own file, and says what was done. A JSON file keeps what else is in it; another is
 * replaced. The old file stays beside it. @throws Error when the person says no, or cannot be asked.
 */
export async function writeSettings(file: { path: string; text: string }, isSure: boolean): Promise<string> {
  const path = file.path.replace(/^~\//, `${homedir()}/`)
  mkdirSync(dirname(path), { recursive: true })
  if (!existsSync(path)) {
    writeFileSync(path, file.text, { mode: 0o600 })
    return `Wrote ${path}.`
  }
  const before = readFileSync(path, 'utf8')
  const after = path.endsWith('.json') ? mergeJson(path, before, file.text) : file.text
  if (after === before) return `${path} has these settings already.`
  if (!isSure) await ask(path)
  const backup = freeName(path)
  copyFileSync(path, backup)
  writeFileSync(path, after)
  return `Wrote ${path}; what it was is in ${backup}.`
}

async function ask(path: string): Promise<void> {
  const refusal = new Error(`${path} was left as it is: run with --yes to change it`)
  if (!process.stdin.isTTY) throw refusal
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(`${path} exists. Change it (a backup is kept)? [y/N] `)
  terminal.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw refusal
}

/** Ours over theirs, key by key; lists are replaced. @throws Error when theirs is not a JSON object. */
function mergeJson(path: string, before: string, ours: string): string {
  let theirs: unknown
  try {
    theirs = JSON.parse(before)
  } catch {
    // Comments, most likely: merging would lose them.
  }
  if (!asObject(theirs)) throw new Error(`${path} is not plain JSON: put the printed settings into it by hand`)
  return `${JSON.stringify(merge(theirs, JSON.parse(ours)), null, 2)}\n`
}

function merge(theirs: unknown, ours: unknown): unknown {
  const [left, right] = [asObject(theirs), asObject(ours)]
  if (!left || !right) return ours
  const merged: Record<string, unknown> = { ...left }
  for (const [key, value] of Object.entries(right)) merged[key] = merge(left[key], value)
  return merged
}

/** A backup never overwrites an older one. */
function freeName(path: string): string {
  const names = Array.from({ length: 1_000 }, (_, index) => `${path}.before-triwire${index === 0 ? '' : `-${index}`}`)
  return names.find((name) => !existsSync(name)) ?? join(dirname(path), `before-triwire-${Date.now()}`)
}
