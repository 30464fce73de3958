import { encodeLatin1 } from '../../bytes/frame-cutter.ts'
import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { AnswerForms } from '../answers/native-stream.ts'
import { objectsOf } from '../answers/read-answer.ts'
import { choicesOf } from './content.ts'

/** Each choice of a completion is one delta, and a choice's deltas are one message. */
export const completionForms: AnswerForms = {
  unfold(answer) {
    const choices = choicesOf(answer).map(({ message, text, ...choice }, index) => {
      const delta = asObject(message) ?? { content: message ?? text }
      const calls = objectsOf(delta['tool_calls']).map((call, at) => ({ index: at, ...call }))
      return { index, ...choice, delta: calls.length > 0 ? { ...delta, tool_calls: calls } : delta }
    })
    if (choices.length === 0) return undefined
    return [`data: ${encodeLatin1(JSON.stringify({ ...answer, choices }))}\n\n`, 'data: [DONE]\n\n']
  },
  fold(chunks) {
    let completion: JsonObject = {}
    const merged = new Map<unknown, JsonObject>()
    for (const { choices, usage, ...head } of chunks) {
      completion = { ...head, ...completion, object: 'chat.completion', ...(usage != null && { usage }) }
      for (const { index = 0, delta, ...others } of objectsOf(choices)) {
        const message = { role: 'assistant', content: null, refusal: null }
        const choice = merged.get(index) ?? { index, message, logprobs: null, finish_reason: null }
        merged.set(index, merge(choice, { ...others, message: delta }) as JsonObject)
      }
    }
    const choices = [...merged.values()].map(({ message, ...choice }) => {
      const calls = objectsOf(asObject(message)?.['tool_calls']).map(({ index: _, ...call }) => call)
      return { ...choice, message: calls.length > 0 ? { ...asObject(message), tool_calls: calls } : message }
    })
    return JSON.stringify({ ...completion, choices })
  },
}

/** Members of which later chunks have no more, or the same again. */
const once = new Set(['id', 'type', 'role', 'name', 'finish_reason'])

/** Adds more to what there is, which it may change: texts and lists go on, and what has one index is one thing. */
function merge(told: unknown, more: unknown, name = ''): unknown {
  if (more == null || told == null) return more ?? told
  if (typeof told === 'string') return once.has(name) && told !== '' ? told : `${told}${more}`
  if (Array.isArray(told) && Array.isArray(more)) {
    for (const one of more) {
      const { index, id } = asObject(one) ?? {}
      // A piece of a call without index and id belongs to the last one.
      const ofLast = name === 'tool_calls' && id == null ? told.length - 1 : -1
      const at = typeof index === 'number' ? told.findIndex((other) => asObject(other)?.['index'] === index) : ofLast
      if (at < 0) told.push(one)
      else told[at] = merge(told[at], one)
    }
    return told
  }
  const [before, after] = [asObject(told), asObject(more)]
  if (!before || !after) return more
  for (const [member, value] of Object.entries(after)) before[member] = merge(before[member], value, member)
  return before
}
