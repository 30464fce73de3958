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
}

/** A wire, as far as its refusals need be understood. */
export type Speaker = {
  request: { conversation: { field: string }; caps: readonly string[]; words: RequestWords }
}

/** A place in the conversation: `messages[3].content[1]`, `messages.3.content.1`, `input[0]`. */
const placeEnd = /(?:\[\d{1,6}\]|\.\d{1,6})(?:\[\d{1,6}\]|\.\w{1,40}){0,12}/.source

type Part = { pattern: string; told: string; param: string }

/**
 * A translated model's refusal in the words of its client: fields have the client's names, and a place in the conversation,
 * which is another one there, is told as the field that holds it.
 * @param text what the model says, scrubbed
 * @returns also the client's field that it is first about
 */
export function inClientWords(text: string, model: Speaker, client: Speaker): { text: string; param?: string } {
  const parts = partsOf(model, client)
  const pattern = new RegExp(`(?<![\\w.])(?:${parts.map((part) => `(${part.pattern})`).join('|')})(?!\\w)`, 'g')
  let param: string | undefined
  const told = text.replace(pattern, (_, ...groups: unknown[]) => {
    const part = parts[groups.slice(0, parts.length).findIndex((group) => group !== undefined)]!
    param ??= part.param
    return part.told
  })
  return { text: told, ...(param !== undefined && { param }) }
}

function partsOf({ request: theirs }: Speaker, { request: ours }: Speaker): Part[] {
  const { field } = ours.conversation
  const cap = ours.caps[0]!
  const about: Record<keyof RequestWords, string> = {
    callId: field,
    call: field,
    result: field,
    format: topOf(ours.words.format),
    effort: topOf(ours.words.effort),
  }
  const words = Object.entries(theirs.words) as [keyof RequestWords, string][]
  return [
    { pattern: `${escaped(theirs.conversation.field)}(?:${placeEnd}|(?=:))`, told: field, param: field },
    ...theirs.caps.map((name) => ({ pattern: escaped(name), told: ours.caps.includes(name) ? name : cap, param: cap })),
    ...words
      .sort(([, a], [, b]) => b.length - a.length)
      .map(([kind, word]) => ({ pattern: escaped(word), told: ours.words[kind], param: about[kind] })),
  ]
}

function topOf(path: string): string {
  return path.split('.')[0]!
}

function escaped(word: string): string {
  return word.replaceAll('.', '\\.')
}
