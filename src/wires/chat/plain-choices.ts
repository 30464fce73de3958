import { asObject, type JsonObject } from '../../bytes/json.ts'
import { argumentsIn } from '../answers/content-parts.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { argumentsText, keptSources, stringOf } from '../answers/read-answer.ts'
import { formOf, listOfCalls, withCallsBeside } from './content.ts'
import { argumentsHolder } from './tool-calls.ts'

/** The member of a choice that holds its content, in a chunk or in a whole answer. */
type ChoiceKey = 'delta' | 'message'

/**
 * A chunk or an answer whose choices have the wire's own form (ruling Y5). SDKs pass over any other form, and the client would
 * see an empty answer. These forms are read:
 * - `message` or `text` instead of `delta`, and the reverse
 * - calls beside them, or in no list
 * - the name and the arguments of a call in other places
 * @param hasOwn deltas have said something: a whole message after them repeats them
 * @returns undefined if nothing has to be changed; in latin1
 */
export function withPlainChoices(patch: JsonPatch, key: ChoiceKey, hasOwn = false): string | undefined {
  const choices: unknown[] = Array.isArray(patch.value['choices']) ? patch.value['choices'] : []
  const said = choices.map((choice) => plainOf(asObject(choice), key, hasOwn))
  if (said.every((one) => one === undefined)) return undefined
  const text = patch.bytes.toString()
  for (const [place, one] of said.entries()) {
    if (one === undefined) continue
    const sourceAt = keptSources(text, 'arguments', (root) =>
      callsOf(asObject(asList(root['choices'])[place]) ?? {}, one.holder).map((call) =>
        argumentsHolder(asObject(call) ?? {}),
      ),
    )
    const { tool_calls: _, ...members } = one.content
    const calls = one.calls.map((call, at) => {
      const plain = isPlain(call) ? asObject(call) : plainCall(asObject(call) ?? {}, () => sourceAt(at))
      // In a whole message the position tells the calls apart.
      return plain && key === 'delta' && one.holder === 'message' ? { index: at, ...plain } : (plain ?? call)
    })
    const plain = { ...members, ...(calls.length > 0 && { tool_calls: calls }) }
    const values = new Map<string, string | undefined>([[key, JSON.stringify(plain)]])
    for (const name of besides) if (name !== key) values.set(name, undefined)
    patch.set(['choices', `${place}`], values)
  }
  return patch.result().toString('latin1')
}

/** Members of a choice that are read into its delta or message. */
const besides = ['delta', 'message', 'text', 'tool_calls', 'function_call']

type PlainContent = { content: JsonObject; calls: readonly unknown[]; holder: ChoiceKey }

/** The content of a choice, if it is not in the wire's own form. */
function plainOf(choice: JsonObject | undefined, key: ChoiceKey, hasOwn: boolean): PlainContent | undefined {
  if (choice === undefined) return undefined
  const own = asObject(choice[key])
  const merged = withCallsBeside(choice, own)
  if (merged !== undefined && formOf(merged) !== 'empty') {
    const calls = listOfCalls(merged['tool_calls'])
    const isRight =
      merged === own && (own['tool_calls'] == null || Array.isArray(own['tool_calls'])) && calls.every(isPlain)
    return isRight ? undefined : { content: merged, calls, holder: key }
  }
  const otherKey = key === 'delta' ? 'message' : 'delta'
  const words = [choice['text'], choice[key], choice[otherKey]].find((one) => stringOf(one))
  const other = asObject(choice[otherKey]) ?? (words === undefined ? {} : { content: words })
  const isEmpty = formOf(other) === 'empty' || hasOwn
  if (isEmpty) return own || key === 'message' ? undefined : { content: {}, calls: [], holder: key }
  return { content: { ...own, ...other }, calls: listOfCalls(other['tool_calls']), holder: otherKey }
}

function callsOf(choice: JsonObject, holder: ChoiceKey): unknown[] {
  return listOfCalls(withCallsBeside(choice, asObject(choice[holder]))?.['tool_calls'])
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/** Whether SDKs find the name and the arguments of a call, or of a piece of one. A value that is no object stays: nobody can read it. */
function isPlain(value: unknown): boolean {
  const call = asObject(value)
  if (call === undefined || asObject(call['custom'])) return true
  const fn = asObject(call['function'])
  if (fn === undefined)
    return call['function'] === undefined && call['name'] === undefined && argumentsIn(call) === undefined
  const { arguments: args } = fn
  return args == null ? argumentsIn(call) === undefined : typeof args === 'string'
}

/** @param source the exact text of its arguments, if they are no text */
function plainCall(call: JsonObject, source: () => string | undefined): JsonObject {
  const {
    function: fn,
    name,
    call_id,
    arguments: _,
    input: __,
    parameters: ___,
    args: ____,
    params: _____,
    ...others
  } = call
  const own = asObject(fn)
  const called = stringOf(own?.['name']) ?? stringOf(name) ?? stringOf(fn)
  const value = argumentsIn(call)
  const isKept = typeof value === 'object' && argumentsHolder(call)['arguments'] === value
  const text = value === undefined ? undefined : ((isKept ? source() : undefined) ?? argumentsText(value))
  const id = others['id'] ?? call_id
  return {
    ...others,
    ...(id !== undefined && { id }),
    function: { ...(called && { name: called }), ...(text !== undefined && { arguments: text }) },
  }
}
