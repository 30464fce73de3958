/**
 * A wire's names for the parts of a request that refusals mention. A part without a name there has the nearest field's
 * name.
 */
type RequestWords = {
  /** The id by which a result names its call. */
  callId: string
  call: string
  result: string
  /** Structured output. */
  format: string
  effort: string
  /** How long it may think, in tokens. */
  budget: string
  /** The field of stop sequences; in quotes if its name is an ordinary word. */
  stops: string
}

/** The names in a wire that its refusals may use: the field of the conversation, fields that cap the output, and words. */
export type WireSpeech = { conversation: { field: string }; caps: readonly string[]; words: RequestWords }

/** A place in the conversation: `messages[3].content[1]`, `messages.3.content.1`, `input[0]`. */
const placeEnd = /(?:\[\d{1,6}\]|\.\d{1,6})(?:\[\d{1,6}\]|\.\w{1,40}){0,12}/.source

/**
 * Rewords the refusal of a model on another wire for the client. Fields get the client's names. A place in the conversation
 * differs between the wires, so it becomes the name of the field that holds it. Its `param` stays null (spec 7.3).
 * @param text the model's words, scrubbed
 */
export function inClientWords(text: string, model: WireSpeech, client: WireSpeech): string {
  const parts = partsOf(model, client)
  const pattern = new RegExp(`(?<![\\w.])(?:${parts.map(([part]) => `(${part})`).join('|')})(?!\\w)`, 'g')
  return text.replace(pattern, (_, ...groups: unknown[]) => parts[groups.findIndex((group) => group !== undefined)]![1])
}

/** The patterns to look for, without groups, and their replacements. */
function partsOf(theirs: WireSpeech, ours: WireSpeech): (readonly [pattern: string, told: string])[] {
  const words = Object.entries(theirs.words) as [keyof RequestWords, string][]
  const { field } = ours.conversation
  return [
    [`${escaped(theirs.conversation.field)}(?:${placeEnd}|(?=:))`, field],
    ...theirs.caps.map((name) => [escaped(name), ours.caps.includes(name) ? name : ours.caps[0]!] as const),
    ...words.map(([kind, word]) => [escaped(word), ours.words[kind]] as const),
  ]
}

function escaped(word: string): string {
  return word.replaceAll('.', '\\.')
}
