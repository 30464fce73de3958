import { asObject, type JsonObject } from '../../bytes/json.ts'
import { callsMax, type Narrator, tooMany } from '../../inference/narrator.ts'
import { createArgumentShape } from '../answers/argument-shape.ts'
import { argumentsIn, argumentsText, stringOf, unreadable } from '../answers/read-answer.ts'

/** A call of the answer, from its first fragment on. */
class ToolCall {
  id: string | undefined
  name: string | undefined
  block: number | undefined
  isStopped = false
  /** The number of indices that refer to this call now. An index can pass to another call. */
  indices = 0
  buffered = ''
  /**
   * Whether the first fragment is an empty object that is withheld. The object is either the whole arguments, or a
   * placeholder that some servers send before the real arguments.
   */
  isWithheld = false
  shape = createArgumentShape()
}

/**
 * Finds the call that a fragment belongs to (table in translation 4.2). Servers omit the index, send 0 for every call,
 * change ids, and repeat names. A call ends with the answer. It ends earlier if its arguments are a whole object and
 * another block follows. Whole arguments alone do not end a call.
 */
export class ToolCalls {
  readonly #narrator: Narrator
  readonly #calls: ToolCall[] = []
  readonly #byIndex = new Map<number, ToolCall>()
  readonly #byId = new Map<string, ToolCall>()
  /** Open calls whose arguments are a whole object. */
  readonly #whole = new Set<ToolCall>()
  /** Whether a fragment had neither id, name nor arguments. */
  #hasBlank = false
  /** The calls whose arguments are not whole yet. Such calls without an index are also in `#unnumbered`. */
  readonly #unfinished = new Set<ToolCall>()
  readonly #unnumbered = new Set<ToolCall>()

  readonly #isCumulative: boolean
  readonly #toolNames: ReadonlySet<string>
  /** The newest call, while its name may still be only the beginning of the name of a tool. */
  #pending: ToolCall | undefined

  constructor(narrator: Narrator, isCumulative: boolean, toolNames: ReadonlySet<string>) {
    this.#narrator = narrator
    this.#isCumulative = isCumulative
    this.#toolNames = toolNames
  }

  /** Reads a fragment of a call. @param kept returns the source text of arguments that are an object, not a string */
  push(entry: Record<string, unknown>, kept: () => string | undefined) {
    const index = typeof entry['index'] === 'number' ? entry['index'] : undefined
    const fn = asObject(entry['function'])
    const id = wordOf(entry['id']) ?? wordOf(entry['call_id'])
    const name = wordOf(fn?.['name']) ?? wordOf(entry['name']) ?? wordOf(entry['function'])
    const raw = argumentsIn(entry)
    const isKept = typeof raw === 'object' && argumentsHolder(entry)['arguments'] === raw
    const text = (isKept ? kept() : undefined) ?? argumentsText(raw)

    const known = this.#find(index, id, name, text)
    if (known === 'lost') {
      if (text.trim() !== '') this.#narrator.fail(unreadable())
      this.#hasBlank = true
      return
    }
    const call = known ?? this.#create()
    if (call === undefined) return
    if (index !== undefined) this.#number(call, index)
    if (id !== undefined && (call.id === undefined || !known)) {
      call.id = id
      this.#byId.set(id, call)
    }
    if (name !== undefined) this.#rename(call, name)
    if (text !== '') this.#append(call, text)
  }

  /** Ends earlier calls whose arguments are whole. To be called before another block begins. */
  stopWhole() {
    this.#openPending()
    for (const call of this.#whole) this.#stopIfWhole(call)
  }

  /**
   * Called when the answer has ended. Withheld arguments are released. A call that never received a name is unreadable
   * (ruling Y5). If a call is expected and only empty fragments came, the answer is unreadable too.
   * @param expectsCall whether the stop reason promises a call, or the answer has no other content
   */
  complete(expectsCall: boolean) {
    this.#openPending()
    const named = this.#calls.filter((call) => call.block !== undefined)
    for (const call of named) if (!call.isStopped) this.#release(call)
    const isUnread = this.#calls.some(
      ({ block, id, buffered }) => block === undefined && (id !== undefined || buffered !== ''),
    )
    const isBlank = expectsCall && (this.#hasBlank || this.#calls.length > 0)
    if (isUnread || (named.length === 0 && isBlank)) this.#narrator.miss('call', unreadable())
  }

  /**
   * Finds the call of a fragment. @returns undefined if a new call begins; `lost` if the call is unknown or ambiguous
   */
  #find(index: number | undefined, id: string | undefined, name: string | undefined, text: string) {
    const atIndex = index === undefined ? undefined : this.#byIndex.get(index)
    const pending = this.#pending
    const mayBePending = pending && (index === undefined || atIndex === pending)
    if (mayBePending && this.#joined(pending, id, name) !== undefined) return pending
    if (atIndex) return isAnother(atIndex, id, name, text) ? undefined : atIndex
    if (id !== undefined) return name === undefined ? this.#byId.get(id) : undefined
    if (name !== undefined) return undefined
    if (index === undefined) return onlyOne(this.#unfinished) ?? 'lost'
    // If only one call began without an index, the fragment continues that call.
    return onlyOne(this.#unnumbered)
  }

  /** Adds a call. @returns undefined if there are too many calls; then the answer has failed */
  #create(): ToolCall | undefined {
    if (this.#calls.length >= callsMax) {
      this.#narrator.fail(tooMany)
      return undefined
    }
    const call = new ToolCall()
    this.#calls.push(call)
    this.#note(call)
    return call
  }

  #number(call: ToolCall, index: number) {
    const before = this.#byIndex.get(index)
    if (before === call) return
    this.#byIndex.set(index, call)
    call.indices++
    this.#note(call)
    if (before === undefined) return
    before.indices--
    this.#note(before)
  }

  #note(call: ToolCall) {
    const isWhole = call.shape.isWhole()
    keep(this.#unfinished, call, !isWhole)
    keep(this.#unnumbered, call, !isWhole && call.indices === 0)
  }

  /**
   * Sets the name of a call, or adds a piece to its name. The names of the declared tools show whether the new text is
   * only a piece of a name (BUG-7).
   */
  #rename(call: ToolCall, name: string) {
    const joined = call === this.#pending ? this.#joined(call, undefined, name) : undefined
    if (call.name !== undefined && joined === undefined) return
    if (call !== this.#pending) this.stopWhole()
    call.name = joined ?? name
    this.#pending = call
    const isWhole = ![...this.#toolNames].some((one) => one !== call.name && one.startsWith(call.name!))
    if (isWhole || call.buffered !== '') this.#openPending()
  }

  /** If a fragment continues the call's name, returns the longer name. Returns undefined for any other fragment. */
  #joined(call: ToolCall, id: string | undefined, name: string | undefined): string | undefined {
    const begun = call.name
    if (begun === undefined || name === undefined || name === begun || (id !== undefined && id !== call.id))
      return undefined
    if (this.#toolNames.has(begun) && this.#toolNames.has(name)) return undefined
    return [begun + name, name].find((one) =>
      [...this.#toolNames].some((tool) => one.startsWith(begun) && tool.startsWith(one)),
    )
  }

  #openPending() {
    const call = this.#pending
    this.#pending = undefined
    if (call?.name === undefined) return
    call.block = this.#narrator.open({ kind: 'tool_call', callId: call.id ?? '', name: call.name })
    this.#narrator.delta(call.block, call.buffered)
    call.buffered = ''
  }

  #append(call: ToolCall, piece: string) {
    if (call === this.#pending) this.#openPending()
    if (call.isStopped) {
      if (call.shape.take(piece, this.#isCumulative).trim() !== '') this.#narrator.fail(unreadable())
      return
    }
    const trimmed = piece.length <= 16 ? piece.trim() : piece
    if (call.isWithheld) {
      if (trimmed === '') return
      call.isWithheld = false
      call.shape = createArgumentShape()
    } else if (call.shape.isBlank() && (trimmed === '{}' || trimmed === 'null')) {
      call.isWithheld = true
      call.shape.push('{}')
      this.#markWhole(call)
      return
    }
    const text = call.shape.take(piece, this.#isCumulative)
    this.#markWhole(call)
    if (call.block === undefined) call.buffered += text
    else this.#narrator.delta(call.block, text)
    if (call.block !== undefined && call.block < this.#narrator.count - 1) this.#stopIfWhole(call)
  }

  #markWhole(call: ToolCall) {
    keep(this.#whole, call, call.shape.isWhole())
    this.#note(call)
  }

  #stopIfWhole(call: ToolCall) {
    if (call.isStopped || call.block === undefined || !call.shape.isWhole()) return
    this.#release(call)
    this.#narrator.stop(call.block)
    call.isStopped = true
    this.#whole.delete(call)
  }

  #release(call: ToolCall) {
    if (call.block !== undefined) this.#narrator.delta(call.block, call.isWithheld ? '{}' : call.shape.rest())
    call.isWithheld = false
  }
}

function keep<One>(set: Set<One>, one: One, isIn: boolean) {
  if (isIn) set.add(one)
  else set.delete(one)
}

function onlyOne<One>(set: ReadonlySet<One>): One | undefined {
  return set.size === 1 ? set.values().next().value : undefined
}

/**
 * Whether a fragment begins a new call, although it has the index of the call `call`. If the arguments of `call` are a
 * whole object, a fragment cannot continue them.
 */
function isAnother(call: ToolCall, id: string | undefined, name: string | undefined, text: string): boolean {
  if (name === undefined) return false
  if (call.name !== undefined && name !== call.name) return true
  if (!call.shape.isWhole()) return false
  if (id === undefined) return text.trim() !== '' && !call.isWithheld
  return call.id !== undefined && id !== call.id
}

/**
 * Finds the object that has a call's `arguments`: the call's `function`, or the call itself. No other name is tried,
 * because the parser keeps source text only for this name.
 */
export function argumentsHolder(call: JsonObject): JsonObject {
  const fn = asObject(call['function'])
  return fn && fn['arguments'] !== undefined ? fn : call
}

/** Returns a text as it is. @returns undefined for a blank or missing text */
function wordOf(value: unknown): string | undefined {
  const word = stringOf(value)
  return word?.trim() ? word : undefined
}
