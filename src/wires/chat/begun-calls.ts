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

  hasIn(choice: unknown): boolean {
    return this.#calls.keys().some((key) => key.startsWith(`${choice}/`))
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
        if (begun === undefined || this.#begins(key, call)) this.#begin(key, stringOf(call['id']), text)
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

  #begin(key: string, id: string | undefined, text: string): void {
    if (this.#calls.size >= callsMax) return
    // Learned chunks of the former call do not count for this one.
    const before = this.#calls.get(key)
    if (before) before.isWatched = true
    const begun = { id, first: text, shape: createArgumentShape(), raw: '', isWatched: false }
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

/** So much of a number tells it from others. */
const keyCharactersMax = 40

/** The calls of a choice, each with its key. */
function callsIn({ index = 0, delta }: JsonObject): [string, JsonObject][] {
  const calls = objectsOf(asObject(delta)?.['tool_calls'])
  return calls.map((call, at) => [`${index}/${call['index'] ?? at}`.slice(0, keyCharactersMax), call])
}
