import { stringBehind } from '../../bytes/frame-cutter.ts'
import { asObject, type JsonObject } from '../../bytes/json.ts'
import { appendOwn } from '../../bytes/own-copy.ts'
import { callsMax } from '../../inference/narrator.ts'
import { argumentsIn, isEmptyArguments } from '../answers/content-parts.ts'
import { decodeString } from '../answers/produced-text.ts'
import { argumentsText, stringOf } from '../answers/read-answer.ts'

/** A call as its start and its deltas have said it. */
type SaidCall = {
  name: string | undefined
  callId: string | undefined
  /** The input as its start had it, and as the deltas bring it, the start included, as it stands in frames. */
  initial: string
  raw: string
}

/** The members with the input of a call that the client runs, by the types of items. */
const inputMembers: Readonly<Record<string, string>> = { function_call: 'arguments', custom_tool_call: 'input' }

/** Events that bring the input of a call. */
export const inputDelta = /^response\.(?:function_call_arguments|custom_tool_call_input)\.delta$/

/** Events that end the input of a call, or an item. */
export const callEnd = /^response\.(?:function_call_arguments|custom_tool_call_input|output_item)\.done$/

/** The most input of a stream that is kept, in characters. */
const keptMax = 4 * 1_048_576

/**
 * The calls of a stream. Clients run a call as the end of its item has it, and SDKs as the last event has it. Some servers leave
 * out there what the deltas or the start said (ruling Y5).
 */
export class SaidCalls {
  readonly #calls = new Map<string, SaidCall>()
  readonly #mint: (place: string) => string
  #last: SaidCall | undefined
  #kept = 0

  /** @param mint an id for the call at this place, if it has none */
  constructor(mint: (place: string) => string) {
    this.#mint = mint
  }

  /** A call begins. @returns the members that its item needs; empty for any other item */
  begin(event: JsonObject): Map<string, string> {
    const item = asObject(event['item']) ?? {}
    if (!(`${item['type']}` in inputMembers) || this.#calls.size > 2 * callsMax) return new Map()
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
   * A piece of a call's input, or all of it.
   * @param raw as it stands in the frame
   * @param isWhole it is that of the end: it counts if no delta came
   */
  add(frame: string, raw: string, isWhole = false): void {
    const index = /"output_index":\s*(\d+)/.exec(frame)?.[1]
    const keys = keysOf(index, stringBehind(frame, '"item_id":') || undefined)
    let call = this.#find(keys) ?? (keys.length === 0 ? this.#last : undefined)
    if (call === undefined) {
      if (this.#calls.size > 2 * callsMax) return
      // Deltas may come before their item is announced (ruling U7).
      call = { name: undefined, callId: undefined, initial: '', raw: '' }
      for (const key of keys) this.#calls.set(key, call)
      this.#last = call
    }
    if (isWhole && call.raw !== '') return
    this.#kept += raw.length
    if (this.#kept <= keptMax) call.raw = appendOwn(call.raw, raw)
  }

  /**
   * The members that the end of a call's input lacks, or has empty.
   * @param event the end of the input, or of the item
   * @returns undefined if it is a call without a name, which nobody can run
   */
  end(event: JsonObject): Map<string, string> | undefined {
    const item = asObject(event['item'])
    const keys = keysOf(event['output_index'], event['item_id'] ?? item?.['id'])
    const call = keys.length === 0 ? this.#last : this.#find(keys)
    if (item) return this.#item(item, `${event['output_index'] ?? item['id']}`, call)
    const member = `${event['type']}`.includes('custom_tool') ? 'input' : 'arguments'
    const text = saidOf(call)
    return isEmptyArguments(event[member] ?? '') && !isEmptyArguments(text)
      ? new Map([[member, JSON.stringify(text)]])
      : new Map()
  }

  /** The same for an item of the whole output. @param place in the output */
  final(item: JsonObject, place: number): Map<string, string> | undefined {
    // Its place in the output need not be its index in the events, so that an id is better evidence.
    const call = this.#find(keysOf(undefined, item['id'])) ?? this.#find(keysOf(place, undefined))
    return this.#item(item, `${place}`, call)
  }

  /** @param call what was said of it before, if anything was */
  #item(item: JsonObject, place: string, call?: SaidCall): Map<string, string> | undefined {
    const member = inputMembers[`${item['type']}`]
    const values = new Map<string, string>()
    if (member === undefined) return values
    const name = stringOf(item['name']) ?? call?.name
    if (!name?.trim()) return undefined
    if (name !== item['name']) values.set('name', JSON.stringify(name))
    if (!stringOf(item['call_id'])) values.set('call_id', JSON.stringify(call?.callId ?? this.#mint(place)))
    const value = item[member] ?? argumentsIn(item)
    const said = saidOf(call)
    // No member at all is no text that a client could parse.
    const own = value == null && member === 'arguments' ? '{}' : argumentsText(value)
    const text = isEmptyArguments(own) && !isEmptyArguments(said) ? said : own
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

/** The input that came before the end of a call. */
function saidOf(call: SaidCall | undefined): string {
  return call === undefined ? '' : call.raw === '' ? call.initial : decodeString(call.raw)
}

/** So much of an id tells it from others. */
const keyCharactersMax = 200

function keysOf(index: unknown, id: unknown): string[] {
  const keys = [index === undefined ? undefined : `at ${index}`, stringOf(id) && `id ${id}`]
  return keys.filter((key) => key !== undefined).map((key) => key.slice(0, keyCharactersMax))
}

/** Whether the end of a call, or of its input, may lack a member, or have it empty: only such a frame is parsed. */
export function mayLack(frame: string, isItem: boolean): boolean {
  return !input.test(frame) || (isItem && !(namedCall.test(frame) && idOfCall.test(frame)))
}

/** Whether an item is a call that the client runs. */
export const clientCall = /"type"\s*:\s*"(?:function_call|custom_tool_call)"/
const namedCall = /"name"\s*:\s*"\s*[^"\s]/
const idOfCall = /"call_id"\s*:\s*"[^"]/
const input = /"(?:arguments|input)"\s*:\s*"(?!\s*(?:\{\s*\})?\s*")/
