import { asObject, type JsonObject } from '../../bytes/json.ts'
import { argumentsIn, kindOfPart } from '../answers/content-parts.ts'
import { stringOf } from '../answers/read-answer.ts'

/**
 * An output item as the wire has it. Some servers send a text, a part of a message or a call of another wire in its place (ruling
 * Y5). An item that cannot be read so stays as it is.
 */
export function plainItem(value: unknown): JsonObject {
  if (typeof value === 'string') return { type: 'message', content: value }
  const item = asObject(value)
  // No kind of item: the teller notes that it could not be read.
  if (!item) return { type: '' }
  const type = stringOf(item['type']) ?? ('name' in item ? 'function_call' : 'message')
  const kind = kindOfPart(type)
  if (type === 'message') return item['type'] === type ? item : { ...item, type }
  if (kind === 'text' || kind === 'refusal') return { ...item, type: 'message', content: [item] }
  if (kind !== 'tool_call') return item
  const fn = asObject(item['function']) ?? {}
  const name = item['name'] ?? fn['name']
  return { ...item, type: 'function_call', name, arguments: argumentsIn(item) }
}
