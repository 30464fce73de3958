/**
 * The names of request parts on one wire, as error messages use them. For a part that the wire lacks, the nearest field
 * is named.
 */
type RequestWords = {
  /** The member with which a tool result refers to its call. */
  callId: string
  call: string
  result: string
  /** The field of structured output. */
  format: string
  effort: string
  /** The field of the thinking budget. */
  budget: string
  /** The field of stop sequences, in quotes if the field's name is an ordinary word. */
  stops: string
}

/**
 * The names of a wire's request fields in refusals: the conversation's field, the fields that cap the output, and
 * others.
 */
export type WireSpeech = { conversation: { field: string }; caps: readonly string[]; words: RequestWords }

/** Matches the rest of a path after the field's name: `[3].content[1]` or `.3.content.1` after `messages`. */
const placeEnd = /(?:\[\d{1,6}\]|\.\d{1,6})(?:\[\d{1,6}\]|\.\w{1,40}){0,12}/.source

/**
 * Rewords the refusal of a model on another wire for the client. Field names become the client's names. A path into the
 * conversation has another form on each wire, so it becomes the name of the conversation's field. The error's `param`
 * stays null (spec 7.3).
 * @param text the model's error text, without parts that reveal the host
 */
export function inClientWords(text: string, model: WireSpeech, client: WireSpeech): string {
  const parts = partsOf(model, client)
  const pattern = new RegExp(`(?<![\\w.])(?:${parts.map(([part]) => `(${part})`).join('|')})(?!\\w)`, 'g')
  return text.replace(pattern, (_, ...groups: unknown[]) => parts[groups.findIndex((group) => group !== undefined)]![1])
}

/**
 * For each name of a field or setting on the model's wire: a pattern that matches the name, and the name on the
 * client's wire. The patterns have no capturing groups.
 */
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
