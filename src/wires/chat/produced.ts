import { asObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { callsMax } from '../../inference/narrator.ts'
import { objectsOf, stringOf } from '../answers/read-answer.ts'
import { partsOf, reasoningOf } from './decode-stream.ts'

/** Calls whose name has been counted: some servers repeat it with every fragment. */
export type NamedCalls = Set<string>

/** What is longer is no id with a name, and is counted each time. */
const keyCharactersMax = 1_000

/**
 * The texts that a choice's delta or message brings, in the order in which the hub would tell them (ruling C10): the one
 * of the mirrored reasoning fields that counts, content, refusal, names of calls with their arguments, or input where they are
 * custom. Every choice that was asked for is paid for.
 */
export function producedTexts(
  choice: Record<string, unknown>,
  field: Profile['reasoningField'],
  named: NamedCalls,
): string[] {
  const delta = asObject(choice['delta']) ?? asObject(choice['message'])
  if (delta === undefined) return []
  const parts = partsOf(delta['content'])
  const texts = [reasoningOf(delta, field) || parts.reasoning, parts.text, stringOf(delta['refusal']) ?? '']
  for (const [position, call] of objectsOf(delta['tool_calls']).entries()) {
    const id = `${choice['index']}/${call['index'] ?? position}/${call['id']}`
    texts.push(...callTexts(asObject(call['function']) ?? asObject(call['custom']), id, named))
  }
  const legacy = asObject(delta['function_call'])
  if (legacy) texts.push(...callTexts(legacy, `${choice['index']}/legacy`, named))
  return texts.filter((text) => text !== '')
}

/** Whether a choice's delta brings anything but reasoning. */
export function saysAnswer(choice: Record<string, unknown>): boolean {
  const delta = asObject(choice['delta']) ?? {}
  const isText = partsOf(delta['content']).text !== '' || !!stringOf(delta['refusal'])
  return isText || objectsOf(delta['tool_calls']).length > 0 || delta['function_call'] != null
}

function callTexts(call: Record<string, unknown> | undefined, id: string, named: NamedCalls): string[] {
  const name = stringOf(call?.['name']) ?? ''
  const key = `${id}/${name}`
  const isNew = !named.has(key)
  if (name !== '' && named.size < callsMax && key.length <= keyCharactersMax) named.add(key)
  const args = call?.['arguments'] ?? call?.['input']
  return [isNew ? name : '', typeof args === 'string' ? args : args == null ? '' : JSON.stringify(args)]
}
