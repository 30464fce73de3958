import { asObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { callsMax } from '../../inference/narrator.ts'
import { objectsOf, stringOf } from '../answers/read-answer.ts'
import { partsOf, reasoningOf } from './content.ts'

/** Calls whose name has been counted: some servers repeat it with every fragment. */
export type NamedCalls = Set<string>

/** So much of an id or a name tells it from others. */
const keyCharactersMax = 200

/**
 * The texts that a choice's delta or message brings, in the order in which the hub would show them (ruling C10). These
 * are the mirrored reasoning field that counts, the content, the refusal, and names of calls with their arguments, or
 * input if they are custom. Every choice that was asked for is paid for.
 */
export function producedTexts(
  choice: Record<string, unknown>,
  field: Profile['chat']['reasoningField'],
  named: NamedCalls,
): string[] {
  const delta = asObject(choice['delta']) ?? asObject(choice['message'])
  if (delta === undefined) return []
  const parts = partsOf(delta['content'])
  const texts = [reasoningOf(delta, field) || parts.reasoning, parts.text, stringOf(delta['refusal']) ?? '']
  for (const [position, call] of objectsOf(delta['tool_calls']).entries()) {
    const id = `${keyWord(choice['index'])}/${keyWord(call['index'] ?? position)}/${keyWord(call['id'])}`
    texts.push(...callTexts(asObject(call['function']) ?? asObject(call['custom']), id, named))
  }
  const legacy = asObject(delta['function_call'])
  if (legacy) texts.push(...callTexts(legacy, `${keyWord(choice['index'])}/legacy`, named))
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
  const key = `${id}/${keyWord(name)}`
  const isNew = !named.has(key)
  if (name !== '' && named.size < callsMax) named.add(key)
  const args = call?.['arguments'] ?? call?.['input']
  return [isNew ? name : '', typeof args === 'string' ? args : args == null ? '' : JSON.stringify(args)]
}

function keyWord(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, keyCharactersMax) : typeof value === 'number' ? `${value}` : ''
}

/** So many answers a request may ask for, as the wire's author has it. */
export const choicesMax = 128
