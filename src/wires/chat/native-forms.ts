import { asObject, type JsonObject } from '../../bytes/json.ts'
import { ArgumentPieces } from '../../inference/raw-arguments.ts'
import type { AnswerForms } from '../answers/native-stream.ts'
import { objectsOf } from '../answers/read-answer.ts'
import { openCompletion } from './native-json.ts'

/**
 * Converts a completion to a stream of one chunk, and the deltas of a stream to one message for each choice. A chunk
 * may have messages instead of deltas (see `withPlainChoices`), so the completion itself is this chunk.
 */
export const completionForms: AnswerForms = {
  unfold(_answer, body) {
    const opened = openCompletion(Buffer.from(body, 'latin1'))
    if (opened.state === 'failed') return opened.fault
    return [`data: ${opened.patch.bytes.toString('latin1')}\n\n`, 'data: [DONE]\n\n']
  },
  fold(chunks) {
    const completion: JsonObject = {}
    const merged = new Map<unknown, JsonObject>()
    for (const { choices, usage, ...head } of chunks) {
      for (const [name, value] of Object.entries(head)) completion[name] ??= value
      if (usage != null) completion['usage'] = usage
      for (const { index = 0, delta, ...others } of objectsOf(choices)) {
        const message = { role: 'assistant', content: null, refusal: null }
        const choice = merged.get(index) ?? { index, message, logprobs: null, finish_reason: null }
        merged.set(index, merge(choice, { ...others, message: delta }) as JsonObject)
      }
    }
    // A later choice may begin first.
    const sorted = [...merged.values()].sort((a, b) => Number(a['index']) - Number(b['index']))
    const choices = sorted.map(({ message, ...choice }) => {
      const calls = objectsOf(asObject(message)?.['tool_calls']).map(({ index: _, ...call }) => call)
      return { ...choice, message: calls.length > 0 ? { ...asObject(message), tool_calls: calls } : message }
    })
    return JSON.stringify({ ...completion, object: 'chat.completion', choices })
  },
  argumentsIn: (chunks) =>
    chunks
      .flatMap(({ choices }) => objectsOf(choices))
      .flatMap(({ index, delta }) =>
        objectsOf(asObject(delta)?.['tool_calls']).map((call) => [
          `${index}/${call['index']}`,
          asObject(call['function'])?.['arguments'],
        ]),
      ),
}

/** Members whose texts arrive in pieces. Any other text arrives once, or is repeated unchanged. */
const pieced = new Set([
  ...['content', 'text', 'refusal', 'transcript', 'arguments', 'input', 'summary', 'data'],
  ...['reasoning', 'reasoning_content', 'thinking'],
])

/** Arguments of a call that arrived in several pieces. */
class JoinedArguments {
  readonly #pieces = new ArgumentPieces()
  #text = ''

  add(piece: string): this {
    this.#pieces.add(piece)
    this.#text += piece
    return this
  }

  toJSON(): string {
    return this.#pieces.read(this.#text)
  }
}

function partsIn(content: unknown): unknown[] {
  if (Array.isArray(content)) return content
  if (typeof content !== 'string') return [content]
  return content === '' ? [] : [{ type: 'text', text: content }]
}

/** The position of each list element by its `index`, so that merging long lists takes linear time. */
const places = new WeakMap<readonly unknown[], Map<number, number>>()

function placesOf(list: readonly unknown[]): Map<number, number> {
  let found = places.get(list)
  if (found) return found
  found = new Map()
  for (const [at, one] of list.entries()) {
    const index = asObject(one)?.['index']
    if (typeof index === 'number' && !found.has(index)) found.set(index, at)
  }
  places.set(list, found)
  return found
}

/**
 * Merges a later value into an earlier one, and may change the earlier one. Texts of `pieced` members are joined. Other
 * texts are replaced. Lists are extended, but elements with the same index are merged. If a content changes its form,
 * it becomes a list of parts.
 */
function merge(told: unknown, more: unknown, name = ''): unknown {
  if (more == null || told == null) return more ?? told
  if (name === 'content' && typeof told !== typeof more) return merge(partsIn(told), partsIn(more))
  if (name === 'arguments' && typeof more === 'string') {
    if (typeof told === 'string') return new JoinedArguments().add(told).add(more)
    if (told instanceof JoinedArguments) return told.add(more)
  }
  // The name of a call comes in pieces, or again with each piece of the call.
  if (name === 'name' && typeof told === 'string') return `${more}`.startsWith(told) ? more : `${told}${more}`
  if (typeof told === 'string') return pieced.has(name) ? `${told}${more}` : more === '' ? told : more
  if (Array.isArray(told) && Array.isArray(more)) {
    const known = placesOf(told)
    for (const one of more) {
      const { index, id } = asObject(one) ?? {}
      // A piece of a call without index and id belongs to the last call.
      const ofLast = name === 'tool_calls' && id == null ? told.length - 1 : -1
      const at = typeof index === 'number' ? (known.get(index) ?? -1) : ofLast
      if (at >= 0) told[at] = merge(told[at], one)
      else if (told.push(one) && typeof index === 'number') known.set(index, told.length - 1)
    }
    return told
  }
  const [before, after] = [asObject(told), asObject(more)]
  if (!before || !after) return more
  // A member with the name __proto__ would reach the prototype of all objects.
  for (const [member, value] of Object.entries(after))
    if (member !== '__proto__') before[member] = merge(before[member], value, member)
  return before
}
