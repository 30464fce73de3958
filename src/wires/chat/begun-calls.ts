import { asObject, type JsonObject } from '../../bytes/json.ts'
import { appendOwn } from '../../bytes/memory.ts'
import { callsMax } from '../../inference/narrator.ts'
import { type ArgumentShape, createArgumentShape } from '../answers/argument-shape.ts'
import { decodeString } from '../answers/native-answer.ts'
import { isEmptyArguments, objectsOf, stringOf } from '../answers/read-answer.ts'

/** A call of a chat stream, and the arguments received for it. */
export type BegunCall = {
  id: string | undefined
  /** Whether the call has a name. Without a name, no client can run it. */
  hasName: boolean
  /** The name in the first chunk, or its beginning. */
  name: string | undefined
  /**
   * The arguments of the first chunk, to compare them with those of the next chunk. After that they are dropped, unless
   * they are an empty object, which may be only a placeholder.
   */
  first: string
  /** `shape` has the arguments of parsed chunks. `raw` has those of the unparsed chunks after them, as written. */
  shape: ArgumentShape
  raw: string
  /** Whether the next arguments must be checked, because they may repeat all arguments of the call. */
  isWatched: boolean
}

/** How many characters of arguments are kept for one stream, to detect repetitions. */
const keptMax = 4 * 1_048_576

/**
 * The tool calls of a chat stream, by choice and number. Some servers send the arguments of a call again (ruling Y4).
 * A chunk's arguments are a repetition if they equal the arguments in the call's first chunk. They are one too if they
 * repeat arguments that are complete already.
 */
export class BegunCalls {
  readonly #calls = new Map<string, BegunCall>()
  #kept = 0
  /** The count of calls by choice. */
  readonly #counts = new Map<unknown, number>()
  /** For calls that the upstream sends without numbers: the assigned number by call id. */
  readonly #byId = new Map<string, number>()
  /** The assigned number of the newest call that has this number of the upstream. */
  readonly #byNumber = new Map<string, number>()
  readonly #isCumulative: boolean

  /** @param isCumulative whether each piece of arguments repeats all pieces before it (ruling Y4) */
  constructor(isCumulative: boolean) {
    this.#isCumulative = isCumulative
  }

  hasIn(choice: unknown): boolean {
    return this.#calls.keys().some((key) => key.startsWith(`${choice}/`))
  }

  /**
   * Assigns numbers to the calls in a chunk, and writes them into the chunk (ruling Y3). SDKs throw unless the calls are
   * numbered from 0 without gaps. If a call has no number, a piece with an id or a name begins a call. Any other piece
   * belongs to the previous call.
   * @returns the numbers that differ from those of the upstream, with the paths of the calls
   */
  numbered(choices: readonly unknown[]): [path: string[], index: number][] {
    const found: [string[], number][] = []
    for (const [place, choice] of choices.entries()) {
      const { index = 0, delta } = asObject(choice) ?? {}
      const calls = asObject(delta)?.['tool_calls']
      if (!Array.isArray(calls)) continue
      const fresh = calls.length > 1 ? new Map<number, BegunCall>() : undefined
      for (const [at, one] of calls.entries()) {
        const call = asObject(one)
        if (call === undefined) continue
        const id = stringOf(call['id'])
        const told = call['index']
        if (told != null) {
          const number = typeof told === 'number' ? this.#numberOf(index, told, id, call, fresh) : undefined
          if (number === undefined) continue
          call['index'] = number
          this.#note(index, id, number)
          if (number !== told) found.push([pathOf(place, at), number])
          continue
        }
        const known = id === undefined ? undefined : this.#byId.get(`${index}/${id}`.slice(0, idCharactersMax))
        const count = this.#counts.get(index) ?? 0
        const number = known ?? (id !== undefined || isNamed(call) ? count : Math.max(0, count - 1))
        call['index'] = number
        this.#note(index, id, number)
        // Later pieces of the call may have this number.
        if (this.#byNumber.size < callsMax) this.#byNumber.set(keyOf(index, number), number)
        found.push([pathOf(place, at), number])
      }
    }
    return found
  }

  /**
   * The number of a call, counted from 0. Some servers begin at -1 or 1, leave gaps, or send 0 for each call.
   * @param fresh the calls that begin in the same chunk, by their numbers; undefined if the chunk has only one call
   */
  #numberOf(
    choice: unknown,
    told: number,
    id: string | undefined,
    call: JsonObject,
    fresh: Map<number, BegunCall> | undefined,
  ): number {
    const key = keyOf(choice, told)
    const known = this.#byNumber.get(key)
    const begun = known === undefined ? undefined : (fresh?.get(known) ?? this.#calls.get(keyOf(choice, known)))
    if (known !== undefined && !(begun && isAnother(begun, id, call))) return known
    if (this.#byNumber.size >= callsMax) return told
    // Chunks of the earlier call may have been learned, but they must not serve as a pattern for this call.
    if (begun) begun.isWatched = true
    const number = this.#counts.get(choice) ?? 0
    this.#byNumber.set(key, number)
    fresh?.set(number, begunBy(call))
    return number
  }

  #note(choice: unknown, id: string | undefined, number: number): void {
    const count = this.#counts.get(choice) ?? 0
    if (count >= callsMax || this.#counts.size > callsMax) return
    this.#counts.set(choice, Math.max(count, number + 1))
    if (id !== undefined && this.#byId.size < callsMax)
      this.#byId.set(`${choice}/${id}`.slice(0, idCharactersMax), number)
  }

  /** Whether any call still has no name, so that clients cannot read it (ruling Y5). */
  get hasNameless(): boolean {
    return this.#calls.values().some(({ hasName }) => !hasName)
  }

  /**
   * Finds the calls that begin in this chunk. Returns the path of each call and the members to add to it, because SDKs
   * throw without these members (ruling Y3).
   * @param mint makes the id of a call. `key` is the call's key in `#calls`
   */
  missing(choices: readonly unknown[], mint: (key: string) => string): [path: string[], Map<string, string>][] {
    const found: [string[], Map<string, string>][] = []
    for (const [place, choice] of choices.entries())
      for (const [at, [key, call]] of callsIn(asObject(choice) ?? {}).entries()) {
        if (this.#calls.has(key)) continue
        const path = pathOf(place, at)
        found.push([path, missingInCall(call, () => mint(key))])
        const made = asObject(call['function'])
        if (made && made['arguments'] == null) found.push([[...path, 'function'], noArguments])
      }
    return found
  }

  /** Whether these choices only continue known calls, and none of these calls is watched for repeated arguments. */
  areKnown(choices: readonly JsonObject[]): boolean {
    return choices.every((choice) =>
      callsIn(choice).every(([key, call]) => !this.#begins(key, call) && !this.#calls.get(key)?.isWatched),
    )
  }

  /**
   * Finds the functions in the chunk whose arguments repeat earlier arguments, and leaves only the new part of these
   * arguments in the parsed chunk. Returns the paths of the functions, and the new arguments.
   */
  repeated(choices: readonly unknown[]): [path: string[], Map<string, string>][] {
    const found: [string[], Map<string, string>][] = []
    for (const [place, choice] of choices.entries())
      for (const [at, [key, call]] of callsIn(asObject(choice) ?? {}).entries()) {
        const made = asObject(call['function'])
        const text = stringOf(made?.['arguments']) ?? ''
        const begun = this.#calls.get(key)
        if (begun && isNamed(call)) begun.hasName = true
        if (begun === undefined || this.#begins(key, call)) this.#begin(key, call, text)
        else if (text !== '') {
          const news = this.#newPart(begun, text)
          if (news === text) continue
          made!['arguments'] = news
          found.push([[...pathOf(place, at), 'function'], new Map([['arguments', JSON.stringify(news)]])])
        }
      }
    return found
  }

  /** Returns the call in these choices that has this text as its arguments. */
  callOf(choices: readonly JsonObject[], text: string): BegunCall | undefined {
    const calls = choices.flatMap(callsIn)
    const found = calls.find(([, call]) => asObject(call['function'])?.['arguments'] === text)
    return found && this.#calls.get(found[0])
  }

  /** Adds arguments to a call, from a chunk that was not parsed. @param raw the arguments as written in the chunk */
  add(begun: BegunCall, raw: string): void {
    if (this.#keeps(raw)) begun.raw = appendOwn(begun.raw, raw)
  }

  /** Returns the part of a call's arguments that does not repeat earlier arguments. */
  #newPart(begun: BegunCall, text: string): string {
    watch(begun)
    const { first } = begun
    if (!isEmptyArguments(first)) begun.first = ''
    let news = text === first ? '' : text
    if (news !== '' && this.#keeps(text)) {
      news = begun.shape.take(text, this.#isCumulative)
      this.#kept -= text.length - news.length
    }
    watch(begun)
    return news
  }

  #keeps(text: string): boolean {
    this.#kept += text.length
    return this.#kept <= keptMax
  }

  #begins(key: string, call: JsonObject): boolean {
    const id = stringOf(call['id'])
    const begun = this.#calls.get(key)
    // Some servers send another id with each piece of a call (translation 4.2).
    return begun === undefined || (id !== undefined && id !== begun.id && isNamed(call))
  }

  #begin(key: string, call: JsonObject, text: string): void {
    if (this.#calls.size >= callsMax) return
    // Another call may have had this key before. Chunks of that call may have been learned, but they must not serve as
    // a pattern for chunks of this call.
    const before = this.#calls.get(key)
    if (before) before.isWatched = true
    this.#calls.set(key, begunBy(call, this.#keeps(text)))
  }
}

/** Makes a call from its first piece. @param keeps whether its arguments are kept for comparison */
function begunBy(call: JsonObject, keeps = true): BegunCall {
  const text = argumentsOf(call)
  const name = nameOf(call)?.slice(0, idCharactersMax)
  const id = stringOf(call['id'])
  const begun = {
    id,
    hasName: isNamed(call),
    name,
    first: text,
    shape: createArgumentShape(),
    raw: '',
    isWatched: false,
  }
  if (keeps && !isEmptyArguments(text)) begun.shape.take(text, false)
  watch(begun)
  return begun
}

function argumentsOf(call: JsonObject): string {
  return stringOf(asObject(call['function'])?.['arguments']) ?? ''
}

function watch(begun: BegunCall): void {
  if (begun.raw !== '') begun.shape.take(decodeString(begun.raw), false)
  begun.raw = ''
  begun.isWatched = begun.first !== '' || begun.shape.isWhole()
}

const noArguments = new Map([['arguments', '""']])

/** Whether a call, or a piece of a call in a stream, has the name of its function. */
export function isNamed(call: JsonObject): boolean {
  return Boolean(nameOf(call))
}

function nameOf(call: JsonObject): string | undefined {
  return stringOf(asObject(call['function'] ?? call['custom'])?.['name'])?.trim()
}

/** Whether the arguments so far may be all of the call. An empty object may be a placeholder, so its shape has nothing. */
function isWhole({ first, shape }: BegunCall): boolean {
  return shape.isWhole() || (first !== '' && shape.isBlank())
}

/** Whether a piece begins another call, although it has the number of the call `begun` (translation 4.2). */
function isAnother(begun: BegunCall, id: string | undefined, piece: JsonObject): boolean {
  if (!isNamed(piece) || (id !== undefined && id === begun.id)) return false
  watch(begun)
  const isOtherName = nameOf(piece)?.slice(0, idCharactersMax) !== begun.name
  if (id !== undefined && begun.id !== undefined) return isOtherName || isWhole(begun)
  // Gemini sends calls without ids. Nothing can continue whole arguments, so this piece continues no call.
  const text = argumentsOf(piece)
  return isOtherName ? isWhole(begun) : begun.shape.isWhole() && text.trim() !== '' && !begun.shape.repeats(text)
}

/**
 * Returns the members that every call must have and this call lacks (ruling Y3). @param mint makes an id for the call
 */
export function missingInCall(call: JsonObject, mint: () => string): Map<string, string> {
  const values = new Map<string, string>()
  if (!stringOf(call['id'])) values.set('id', JSON.stringify(mint()))
  if (!stringOf(call['type'])) values.set('type', asObject(call['custom']) ? '"custom"' : '"function"')
  return values
}

/** How many characters of a call's id are compared. */
const idCharactersMax = 200

/** How many characters of a call's number are compared. */
const keyCharactersMax = 40

/** The path of a call in a chunk. @param place the choice's place @param at the call's place in the choice */
function pathOf(place: number, at: number): string[] {
  return ['choices', `${place}`, 'delta', 'tool_calls', `${at}`]
}

/** Returns the calls in the delta of a choice. The key of a call joins the choice's index and the call's index. */
function callsIn({ index = 0, delta }: JsonObject): [string, JsonObject][] {
  const calls = objectsOf(asObject(delta)?.['tool_calls'])
  return calls.map((call, at) => [keyOf(index, call['index'] ?? at), call])
}

function keyOf(choice: unknown, number: unknown): string {
  return `${choice}/${number}`.slice(0, keyCharactersMax)
}
