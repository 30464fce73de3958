/**
 * What a wire calls the parts of a request of which refusals speak. Where a part has no name of its own there, what stands
 * for it.
 */
export type RequestWords = {
  /** The id by which a result names its call. */
  callId: string
  call: string
  result: string
  /** Structured output. */
  format: string
  effort: string
  /** How long it may think, in tokens. */
  budget: string
  /** Where it is to stop; in quotes where the field is an ordinary word. */
  stops: string
}

/** The names in a wire that its refusals may use: the field of the conversation, fields that cap the output, and words. */
export type WireSpeech = { conversation: { field: string }; caps: readonly string[]; words: RequestWords }

/** A place in the conversation: `messages[3].content[1]`, `messages.3.content.1`, `input[0]`. */
const placeEnd = /(?:\[\d{1,6}\]|\.\d{1,6})(?:\[\d{1,6}\]|\.\w{1,40}){0,12}/.source

/**
 * A translated model's refusal in the words of its client: fields have the client's names, and a place in the conversation,
 * which is another one there, is told as the field that holds it. Its `param` stays null (spec 7.3).
 * @param text what the model says, scrubbed
 */
export function inClientWords(text: string, model: WireSpeech, client: WireSpeech): string {
  const parts = partsOf(model, client)
  const pattern = new RegExp(`(?<![\\w.])(?:${parts.map(([part]) => `(${part})`).join('|')})(?!\\w)`, 'g')
  return text.replace(pattern, (_, ...groups: unknown[]) => parts[groups.findIndex((group) => group !== undefined)]![1])
}

/** What to look for, as a pattern without groups, and what to say for it. */
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
