import { asObject, type JsonObject } from '../../bytes/json.ts'
import { isJsonObject } from '../../bytes/scan.ts'
import { callsMax } from '../../inference/narrator.ts'
import { isEmptyArguments } from '../answers/content-parts.ts'
import { objectsOf, stringOf } from '../answers/read-answer.ts'

/** The arguments in the first chunk of a call, kept as long as later ones must be compared with them. */
type BegunCall = { id: string | undefined; text: string; isWhole: boolean; repeated: number }

/** The calls of a chat stream by choice and number. Arguments after whole ones, or equal to the first chunk's, repeat them (ruling Y4). */
export class BegunCalls {
  readonly #calls = new Map<string, BegunCall>()
  /** Those whose arguments may still be repeated. */
  readonly #watched = new Set<string>()

  hasIn(choice: unknown): boolean {
    return this.#calls.keys().some((key) => key.startsWith(`${choice}/`))
  }

  /** Whether no call in these choices begins, or may be repeated. */
  areKnown(choices: readonly JsonObject[]): boolean {
    return choices.every((choice) =>
      callsIn(choice).every(([key, call]) => !this.#begins(key, call) && !this.#watched.has(key)),
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
        else if (text !== '' && this.#watched.has(key)) {
          // After an empty object, which may be a placeholder, only the same once more is a repetition.
          const comesInPieces = begun.isWhole && !isEmptyArguments(begun.text)
          if (comesInPieces ? begun.text.startsWith(text, begun.repeated) : text === begun.text) {
            begun.repeated = (begun.repeated + text.length) % begun.text.length
            made!['arguments'] = ''
            paths.push(['choices', `${place}`, 'delta', 'tool_calls', `${at}`, 'function'])
          }
          if (!begun.isWhole) this.#begin(key, begun.id, '')
        }
      }
    return paths
  }

  #begins(key: string, call: JsonObject): boolean {
    const id = stringOf(call['id'])
    const begun = this.#calls.get(key)
    return begun === undefined || (id !== undefined && id !== begun.id)
  }

  #begin(key: string, id: string | undefined, text: string): void {
    const isWhole = isJsonObject(text)
    if (this.#calls.size < callsMax) this.#calls.set(key, { id, text, isWhole, repeated: 0 })
    if (text === '' || !this.#calls.has(key)) this.#watched.delete(key)
    else this.#watched.add(key)
  }
}

/** So much of a number tells it from others. */
const keyCharactersMax = 40

/** The calls of a choice, each with its key. */
function callsIn({ index = 0, delta }: JsonObject): [string, JsonObject][] {
  const calls = objectsOf(asObject(delta)?.['tool_calls'])
  return calls.map((call, at) => [`${index}/${call['index'] ?? at}`.slice(0, keyCharactersMax), call])
}
