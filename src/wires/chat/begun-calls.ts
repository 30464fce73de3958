import { asObject, type JsonObject } from '../../bytes/json.ts'
import { appendOwn } from '../../bytes/own-copy.ts'
import { callsMax } from '../../inference/narrator.ts'
import { type ArgumentShape, createArgumentShape } from '../answers/argument-shape.ts'
import { isEmptyArguments } from '../answers/content-parts.ts'
import { decodeString } from '../answers/produced-text.ts'
import { objectsOf, stringOf } from '../answers/read-answer.ts'

/** A call of a chat stream, with what is known of its arguments. */
export type BegunCall = {
  id: string | undefined
  /** Nobody can run a call without one. */
  hasName: boolean
  /** The arguments of the first chunk, until the next ones were compared with them. An empty object may be a placeholder. */
  first: string
  /** All arguments but a placeholder and `raw`, which came after them in chunks that were not parsed. */
  shape: ArgumentShape
  raw: string
  /** Whether the next arguments may be a repetition. */
  isWatched: boolean
}

/** The most arguments of a stream that are kept to know a repetition, in characters. */
const keptMax = 4 * 1_048_576

/** The calls of a chat stream by choice and number. Arguments after whole ones, or equal to the first chunk's, repeat them (ruling Y4). */
export class BegunCalls {
  readonly #calls = new Map<string, BegunCall>()
  #kept = 0
  /** Of calls without numbers: by choice how many there are, and by id which number each got. */
  readonly #counts = new Map<unknown, number>()
  readonly #byId = new Map<string, number>()

  hasIn(choice: unknown): boolean {
    return this.#calls.keys().some((key) => key.startsWith(`${choice}/`))
  }

  /**
   * Numbers the calls of a chunk that have no number, in the chunk itself (ruling Y3). A call with an id or a name of its own
   * begins. Any other piece belongs to the call before it.
   * @returns the numbers, by the paths of the calls
   */
  numbered(choices: readonly unknown[]): [path: string[], index: number][] {
    const found: [string[], number][] = []
    for (const [place, choice] of choices.entries()) {
      const { index = 0, delta } = asObject(choice) ?? {}
      const calls = asObject(delta)?.['tool_calls']
      if (!Array.isArray(calls)) continue
      for (const [at, one] of calls.entries()) {
        const call = asObject(one)
        if (call === undefined || call['index'] != null) continue
        const id = stringOf(call['id'])
        const known = id === undefined ? undefined : this.#byId.get(`${index}/${id}`.slice(0, idCharactersMax))
        const count = this.#counts.get(index) ?? 0
        const number = known ?? (id !== undefined || isNamed(call) ? count : Math.max(0, count - 1))
        call['index'] = number
        this.#note(index, id, number)
        found.push([['choices', `${place}`, 'delta', 'tool_calls', `${at}`], number])
      }
    }
    return found
  }

  #note(choice: unknown, id: string | undefined, number: number): void {
    const count = this.#counts.get(choice) ?? 0
    if (count >= callsMax || this.#counts.size > callsMax) return
    this.#counts.set(choice, Math.max(count, number + 1))
    if (id !== undefined && this.#byId.size < callsMax)
      this.#byId.set(`${choice}/${id}`.slice(0, idCharactersMax), number)
  }

  /** Whether a call has not said what it calls, so that it cannot be read (ruling Y5). */
  get hasNameless(): boolean {
    return this.#calls.values().some(({ hasName }) => !hasName)
  }

  /**
   * The members without which SDKs throw at a call (ruling Y3), of calls that begin in this chunk, by their paths.
   * @param mint an id for the call with this key
   */
  missing(choices: readonly unknown[], mint: (key: string) => string): [path: string[], Map<string, string>][] {
    const found: [string[], Map<string, string>][] = []
    for (const [place, choice] of choices.entries())
      for (const [at, [key, call]] of callsIn(asObject(choice) ?? {}).entries()) {
        if (this.#calls.has(key)) continue
        const path = ['choices', `${place}`, 'delta', 'tool_calls', `${at}`]
        found.push([path, missingInCall(call, () => mint(key))])
        const made = asObject(call['function'])
        if (made && made['arguments'] == null) found.push([[...path, 'function'], noArguments])
      }
    return found
  }

  /** Whether no call in these choices begins, or may be repeated. */
  areKnown(choices: readonly JsonObject[]): boolean {
    return choices.every((choice) =>
      callsIn(choice).every(([key, call]) => !this.#begins(key, call) && !this.#calls.get(key)?.isWatched),
    )
  }

  /** The functions whose arguments are a repetition, by their paths in the chunk. Their arguments are emptied. */
  repeated(choices: readonly unknown[]): string[][] {
    const paths: string[][] = []
    for (const [place, choice] of choices.entries())
      for (const [at, [key, call]] of callsIn(asObject(choice) ?? {}).entries()) {
        const made = asObject(call['function'])
        const text = stringOf(made?.['arguments']) ?? ''
        const begun = this.#calls.get(key)
        if (begun && isNamed(call)) begun.hasName = true
        if (begun === undefined || this.#begins(key, call)) this.#begin(key, call, text)
        else if (text !== '' && this.#isSaid(begun, text)) {
          made!['arguments'] = ''
          paths.push(['choices', `${place}`, 'delta', 'tool_calls', `${at}`, 'function'])
        }
      }
    return paths
  }

  /** The call in these choices that has this text as its arguments. */
  callOf(choices: readonly JsonObject[], text: string): BegunCall | undefined {
    const calls = choices.flatMap(callsIn)
    const found = calls.find(([, call]) => asObject(call['function'])?.['arguments'] === text)
    return found && this.#calls.get(found[0])
  }

  /** Arguments of a chunk that was not parsed. @param raw as they stand there */
  add(begun: BegunCall, raw: string): void {
    if (this.#keeps(raw)) begun.raw = appendOwn(begun.raw, raw)
  }

  #isSaid(begun: BegunCall, text: string): boolean {
    watch(begun)
    const { first } = begun
    if (!isEmptyArguments(first)) begun.first = ''
    const isSaid = text === first || (this.#keeps(text) && begun.shape.take(text, false) === '')
    watch(begun)
    return isSaid
  }

  #keeps(text: string): boolean {
    this.#kept += text.length
    return this.#kept <= keptMax
  }

  #begins(key: string, call: JsonObject): boolean {
    const id = stringOf(call['id'])
    const begun = this.#calls.get(key)
    return begun === undefined || (id !== undefined && id !== begun.id)
  }

  #begin(key: string, call: JsonObject, text: string): void {
    if (this.#calls.size >= callsMax) return
    // Learned chunks of the former call do not count for this one.
    const before = this.#calls.get(key)
    if (before) before.isWatched = true
    const id = stringOf(call['id'])
    const hasName = isNamed(call) || (before?.id === undefined && before?.hasName === true)
    const begun = { id, hasName, first: text, shape: createArgumentShape(), raw: '', isWatched: false }
    if (!isEmptyArguments(text) && this.#keeps(text)) begun.shape.take(text, false)
    this.#calls.set(key, begun)
    watch(begun)
  }
}

function watch(begun: BegunCall): void {
  if (begun.raw !== '') begun.shape.take(decodeString(begun.raw), false)
  begun.raw = ''
  begun.isWatched = begun.first !== '' || begun.shape.isWhole()
}

const noArguments = new Map([['arguments', '""']])

/** Whether a call, or a piece of one, says what it calls. */
export function isNamed(call: JsonObject): boolean {
  return Boolean(stringOf(asObject(call['function'] ?? call['custom'])?.['name'])?.trim())
}

/** The members that every call has (ruling Y3), if they are missing. @param mint makes an id for it */
export function missingInCall(call: JsonObject, mint: () => string): Map<string, string> {
  const values = new Map<string, string>()
  if (!stringOf(call['id'])) values.set('id', JSON.stringify(mint()))
  if (!stringOf(call['type'])) values.set('type', asObject(call['custom']) ? '"custom"' : '"function"')
  return values
}

/** So much of an id tells it from others. */
const idCharactersMax = 200

/** So much of a number tells it from others. */
const keyCharactersMax = 40

/** The calls of a choice, each with its key. */
function callsIn({ index = 0, delta }: JsonObject): [string, JsonObject][] {
  const calls = objectsOf(asObject(delta)?.['tool_calls'])
  return calls.map((call, at) => [`${index}/${call['index'] ?? at}`.slice(0, keyCharactersMax), call])
}
