import { stringBehind } from '../../bytes/frame-cutter.ts'
import { asObject, type JsonObject } from '../../bytes/json.ts'
import { appendOwn } from '../../bytes/memory.ts'
import { callsMax } from '../../inference/narrator.ts'
import { decodeString } from '../answers/native-answer.ts'
import { argumentsIn, argumentsText, isEmptyArguments, stringOf } from '../answers/read-answer.ts'

/** A call, as its start and its deltas have described it. */
type SaidCall = {
  name: string | undefined
  callId: string | undefined
  /** `initial`: the input in the start event. `raw`: the input in later events, as written in their frames. */
  initial: string
  raw: string
}

/** The member that contains a call's input, for each type of call that the client runs. */
const inputMembers: ReadonlyMap<unknown, string> = new Map([
  ['function_call', 'arguments'],
  ['custom_tool_call', 'input'],
])

/** Events with a piece of a call's input. */
export const inputDelta = /^response\.(?:function_call_arguments|custom_tool_call_input)\.delta$/

/** Events that end a call's input or an item. */
export const callEnd = /^response\.(?:function_call_arguments|custom_tool_call_input|output_item)\.done$/

/** The most characters of the calls' input that are kept for one stream. */
const keptMax = 4 * 1_048_576

/**
 * The calls of a stream, as its start events and deltas describe them. Some clients read a call in the end event of its
 * item, and SDKs read it in the stream's last event. Some servers omit parts of a call from both events (ruling Y5).
 */
export class SaidCalls {
  readonly #calls = new Map<string, SaidCall>()
  readonly #mint: (place: string) => string
  #last: SaidCall | undefined
  #kept = 0

  /** @param mint makes an id for a call without an id, from the place of the call in the stream */
  constructor(mint: (place: string) => string) {
    this.#mint = mint
  }

  /** Handles the start of an item. @returns a new `call_id` for a call without one, otherwise no members */
  begin(event: JsonObject): Map<string, string> {
    const item = asObject(event['item']) ?? {}
    if (!inputMembers.has(item['type']) || this.#calls.size > 2 * callsMax) return new Map()
    const place = `${event['output_index'] ?? item['id'] ?? this.#calls.size}`
    const keys = keysOf(event['output_index'], item['id'])
    const early = this.#find(keys)
    const call: SaidCall = {
      name: stringOf(item['name']),
      callId: stringOf(item['call_id']) ?? this.#mint(place),
      initial: argumentsText(argumentsIn(item)),
      raw: early?.callId === undefined ? (early?.raw ?? '') : '',
    }
    const values = new Map<string, string>()
    if (call.callId !== item['call_id']) values.set('call_id', JSON.stringify(call.callId))
    for (const key of keys) this.#calls.set(key, call)
    this.#last = call
    return values
  }

  /**
   * Adds a piece of a call's input, or the whole input.
   * @param raw the input as written in the frame
   * @param isWhole whether this is the whole input from an end event, which counts only if no delta arrived
   */
  add(frame: string, raw: string, isWhole = false): void {
    const index = /"output_index":\s*(\d+)/.exec(frame)?.[1]
    const keys = keysOf(index, stringBehind(frame, '"item_id":') || undefined)
    let call = this.#find(keys) ?? (keys.length === 0 ? this.#last : undefined)
    if (call === undefined) {
      if (this.#calls.size > 2 * callsMax) return
      // Deltas may arrive before their item is announced (ruling U7).
      call = { name: undefined, callId: undefined, initial: '', raw: '' }
      for (const key of keys) this.#calls.set(key, call)
      this.#last = call
    }
    if (isWhole && call.raw !== '') return
    this.#kept += raw.length
    if (this.#kept <= keptMax) call.raw = appendOwn(call.raw, raw)
  }

  /**
   * Returns the members that are missing or empty in the end event of a call.
   * @param event the end of the input, or of the item
   * @returns undefined for a call without a name, which no client can run
   */
  end(event: JsonObject): Map<string, string> | undefined {
    const item = asObject(event['item'])
    const keys = keysOf(event['output_index'], event['item_id'] ?? item?.['id'])
    const call = keys.length === 0 ? this.#last : this.#find(keys)
    if (item) return this.#item(item, `${event['output_index'] ?? item['id']}`, call)
    const member = `${event['type']}`.includes('custom_tool') ? 'input' : 'arguments'
    const text = inputOf(event[member], call)
    return text === event[member] ? new Map() : new Map([[member, JSON.stringify(text)]])
  }

  /**
   * Returns the members that are missing or empty in one call of the final output.
   * @param place the index of the item in that output
   */
  final(item: JsonObject, place: number): Map<string, string> | undefined {
    // An id is better evidence than the place in the output, which may differ from the index in events.
    const call = this.#find(keysOf(undefined, item['id'])) ?? this.#find(keysOf(place, undefined))
    return this.#item(item, `${place}`, call)
  }

  /** Returns the members that a call's item lacks. @param call the call as earlier events have described it, if any */
  #item(item: JsonObject, place: string, call?: SaidCall): Map<string, string> | undefined {
    const member = inputMembers.get(item['type'])
    const values = new Map<string, string>()
    if (member === undefined) return values
    const name = stringOf(item['name']) ?? call?.name
    if (!name?.trim()) return undefined
    if (name !== item['name']) values.set('name', JSON.stringify(name))
    if (!stringOf(item['call_id'])) values.set('call_id', JSON.stringify(call?.callId ?? this.#mint(place)))
    // Without `arguments`, clients would have no text to parse.
    const text = inputOf(item[member] ?? argumentsIn(item) ?? (member === 'arguments' ? '{}' : ''), call)
    if (text !== item[member]) values.set(member, JSON.stringify(text))
    return values
  }

  #find(keys: readonly string[]): SaidCall | undefined {
    for (const key of keys) {
      const call = this.#calls.get(key)
      if (call) return call
    }
    return undefined
  }
}

/** Returns the input of a call as received so far, before its end event. Empty for an unknown call. */
function saidOf(call: SaidCall | undefined): string {
  return call === undefined ? '' : call.raw === '' ? call.initial : decodeString(call.raw)
}

/** Returns the input of a call at its end, as text. @param value the input in the end event or in the item */
function inputOf(value: unknown, call: SaidCall | undefined): string {
  const own = argumentsText(value)
  const said = isEmptyArguments(own) ? saidOf(call) : ''
  return isEmptyArguments(said) ? own : said
}

/** How many characters of a call's key are compared. */
const keyCharactersMax = 200

function keysOf(index: unknown, id: unknown): string[] {
  const keys = [index === undefined ? undefined : `at ${index}`, stringOf(id) && `id ${id}`]
  return keys.filter((key) => key !== undefined).map((key) => key.slice(0, keyCharactersMax))
}

/**
 * Whether a frame that ends a call seems to lack the input. With `isItem`, also whether it lacks the name or the id.
 * Only such frames are parsed.
 */
export function mayLack(frame: string, isItem: boolean): boolean {
  return !input.test(frame) || (isItem && !(namedCall.test(frame) && idOfCall.test(frame)))
}

/** Matches an item that is a call for the client to run. */
export const clientCall = /"type"\s*:\s*"(?:function_call|custom_tool_call)"/
const namedCall = /"name"\s*:\s*"\s*[^"\s]/
const idOfCall = /"call_id"\s*:\s*"[^"]/
const input = /"(?:arguments|input)"\s*:\s*"(?!\s*(?:\{\s*\}\s*)?")/
