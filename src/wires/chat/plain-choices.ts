import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { argumentsIn, argumentsText, keptSources, stringOf } from '../answers/read-answer.ts'
import { formOf, listOfCalls, withCallsBeside } from './content.ts'
import { argumentsHolder } from './tool-calls.ts'

/** The member of a choice with its content, in a chunk or in a whole answer. */
type ChoiceKey = 'delta' | 'message'

/**
 * Rewrites a chunk or an answer so that its choices have the wire's own form (ruling Y5). SDKs ignore any other form,
 * and the client would see an empty answer. These other forms are accepted:
 * - `message` or `text` instead of `delta`, and the reverse
 * - calls beside the delta or message, or without a list
 * - the name and arguments of a call in other members
 * @param hasOwn whether deltas had content; then a whole message repeats this content
 * @returns the JSON in latin1; undefined if nothing has to change
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
      // In a whole message, calls are identified by their position.
      return plain && key === 'delta' && one.holder === 'message' ? { index: at, ...plain } : (plain ?? call)
    })
    const plain = { ...members, ...(calls.length > 0 && { tool_calls: calls }) }
    const values = new Map<string, string | undefined>([[key, JSON.stringify(plain)]])
    for (const name of besides) if (name !== key) values.set(name, undefined)
    patch.set(['choices', `${place}`], values)
  }
  return patch.result().toString('latin1')
}

/** Members of a choice that are merged into its delta or message. */
const besides = ['delta', 'message', 'text', 'tool_calls', 'function_call']

type PlainContent = { content: JsonObject; calls: readonly unknown[]; holder: ChoiceKey }

/** The content of a choice in the wire's own form; undefined if it has this form already. */
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

/**
 * Whether SDKs find the name and arguments of a call, or of a piece of one. A value that is no object stays, since it
 * is unreadable anyway.
 */
function isPlain(value: unknown): boolean {
  const call = asObject(value)
  if (call === undefined || asObject(call['custom'])) return true
  const fn = asObject(call['function'])
  if (fn === undefined)
    return call['function'] === undefined && call['name'] === undefined && argumentsIn(call) === undefined
  const { arguments: args } = fn
  return args == null ? argumentsIn(call) === undefined : typeof args === 'string'
}

/** @param source returns the exact text of the call's arguments, if they are no string */
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
