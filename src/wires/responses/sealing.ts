import { type Edit, holdsWord, type Range, splice } from '../../bytes/json.ts'
import { elementsOf, removeElements } from '../../bytes/json-edit.ts'
import { sha256Hex } from '../../ids.ts'
import { objectsOf } from '../answers/read-answer.ts'
import { ClientBody } from '../requests/client-body.ts'
import type { Sealing } from '../wire.ts'

const member = 'encrypted_content'

/** Finds and removes sealed reasoning and compactions. Only the provider account that made them opens them (U13). */
export const sealing: Sealing = { mayBeIn, remove, lastIn }

function mayBeIn(body: Buffer): boolean {
  return holdsWord(body, member)
}

function remove(body: Buffer): Buffer | undefined {
  const items = itemsOf(body)
  const edits: Edit[] = removeElements(items, (index) => sealOf(body, items[index]!) !== undefined)
  return edits.length === 0 ? undefined : splice(body, edits)
}

function lastIn(body: Buffer): string | undefined {
  let seal: string | undefined
  const items = itemsOf(body)
  for (let at = items.length - 1; at >= 0 && seal === undefined; at--) seal = sealOf(body, items[at]!)
  return seal === undefined ? undefined : sha256Hex(seal)
}

/** A digest of the last sealed item of an answer. It identifies the conversation in the next request. */
export function lastSealed(output: unknown): string | undefined {
  const seal = objectsOf(output).findLast((item) => isSeal(item[member]))?.[member]
  return seal === undefined ? undefined : sha256Hex(seal as string)
}

function itemsOf(body: Buffer): Range[] {
  if (!mayBeIn(body)) return []
  const parsed = new ClientBody(body)
  return parsed.isArray('input') ? elementsOf(body, parsed.member('input')!) : []
}

function sealOf(bytes: Buffer, range: Range): string | undefined {
  const text = bytes.toString('utf8', range.start, range.end)
  if (!text.startsWith('{') || !text.includes(`"${member}"`)) return undefined
  const seal = (JSON.parse(text) as Record<string, unknown>)[member]
  return isSeal(seal) ? seal : undefined
}

function isSeal(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
