import { readOverLong } from './over-long.ts'
import { hostName, isKeyLike, revealing } from './revealing.ts'

/** How much of a model's text is passed on, and how much is examined, in characters (rulings U3, U11). */
export const relayedCharactersMax = 400
const searchedCharactersMax = 1_000

/**
 * The most ids of a model's text that are searched for in the request. In a request of 5 MB, a search may take 20 ms.
 */
const searchesMax = 3

/** A shorter name without digits may be an ordinary word. `findName` then looks at its surroundings. */
const tellingCharactersMin = 6

/**
 * Matches ids that clients know, by their prefix. These are ids of calls and items, made by vendors and by compatible
 * servers.
 */
const clientId =
  /^(?:call|toolu|srvtoolu|fc|fco|rs|msg|ct|ctc|cto|ws|fs|ci|cu|ig|mcp|mcpr|mcpl|cmp|lsh|sh)_[A-Za-z0-9]|^chatcmpl-tool-[A-Za-z0-9]/

const word = /[A-Za-z0-9_-]{1,1000}/g

export type ScrubContext = {
  /** The client's name for the model, which replaces the names that upstreams use. */
  modelId: string
  upstreamModels: readonly string[]
  /** Words of the configuration that must not be shown, whatever they look like. */
  hidden: readonly string[]
  /** Paths that we serve, which are not secret. */
  ownPaths: readonly string[]
  /** Whether the client's request contains this id. False if the request has been released from memory (ruling U9). */
  isSent(id: string): boolean
  code?: string
  /** The sentence to use if no part of the model's text may be shown. */
  generic: string
}

/**
 * Returns a model's text in a form that the client may read (spec 7.4.5, rulings U3, U9, U11). Sentences that are meant
 * only for the vendor's customers are removed first. If the rest still reveals something, a generic sentence is
 * returned.
 */
export function scrub(text: string, context: ScrubContext): string {
  const { modelId, upstreamModels, code, generic } = context
  const others = upstreamModels.filter((name) => name !== modelId)
  let named = unwrap(keepCharacters(text, searchedCharactersMax))
  for (const name of others) named = replaceAt(named, findName(named, name), name.length, modelId)
  // Control characters and line breaks do not belong in a message.
  const plain = withoutDocLinks(named)
    .replace(/[\p{Cc}\u2028\u2029]{1,1000}/gu, ' ')
    .trim()
  const overLong = readOverLong(plain, code)
  if (overLong && !overLong.isKnown) return overLong.told
  if (plain === '') return generic
  return isRevealing(plain, others, context) ? (overLong?.told ?? generic) : cut(plain)
}

/** Returns the first characters of a text, and never half a character. A long text is not read as a whole. */
export function keepCharacters(text: string, max: number): string {
  return text.length <= max
    ? text
    : Array.from(text.slice(0, 2 * max))
        .slice(0, max)
        .join('')
}

function isRevealing(text: string, names: readonly string[], context: ScrubContext): boolean {
  const { modelId, hidden, ownPaths, isSent } = context
  // The client's own name for the model reveals nothing, whatever it looks like.
  let rest = replaceAt(text, findStanding(text, modelId), modelId.length, ' ')
  for (const path of ownPaths) rest = replaceAt(rest, findPath(rest, path), path.length, ' ')
  if (names.some((name) => isNamed(rest, name))) return true
  if (hidden.some((secret) => !findWhole(rest, secret).next().done)) return true
  const searched = new Map<string, boolean>()
  const isTheirs = (id: string) => {
    if (clientId.test(id)) return true
    if (!searched.has(id)) searched.set(id, searched.size < searchesMax && isSent(id))
    return searched.get(id)!
  }
  rest = rest.replace(word, (found) => (isKeyLike(found) && isTheirs(found) ? ' ' : found))
  return revealing.some((pattern) => pattern.test(rest)) || (rest.match(word) ?? []).some(isKeyLike)
}

/**
 * Finds an upstream's name for the model. A name that may be an ordinary word counts only in quotes, or if the text
 * calls it a model.
 */
function* findName(text: string, name: string): Iterable<number> {
  const isOrdinary = name.length < tellingCharactersMin && !/\d/.test(name)
  for (const at of findStanding(text, name)) if (!isOrdinary || isCalledModel(text, at, at + name.length)) yield at
}

function isCalledModel(text: string, start: number, end: number): boolean {
  if (/['"`]{2}/.test(text.charAt(start - 1) + text.charAt(end))) return true
  if (/\bmodel:? $/i.test(text.slice(Math.max(0, start - 8), start))) return true
  return start === 0 && /^ (?:is|does|has|cannot|only|supports)\b/.test(text.slice(end, end + 10))
}

/** Finds a name that stands alone. Inside a host, a path or a longer name it means something else. */
function* findStanding(text: string, name: string): Iterable<number> {
  for (const at of findWhole(text, name)) {
    const behind = at + name.length
    if (!/[@/.-]/.test(text.charAt(at - 1)) && !/^(?:[@/-]|[.:]\w)/.test(text.slice(behind, behind + 2))) yield at
  }
}

/** Finds a path of ours in a text. A path after a host name does not count, because it belongs to another server. */
function* findPath(text: string, path: string): Iterable<number> {
  for (const at of findWhole(text, path)) {
    const behind = at + path.length
    if (!/[\w@/.:-]/.test(text.charAt(at - 1)) && !/[/-]/.test(text.charAt(behind))) yield at
  }
}

/** Whether a text contains a name that must not be shown. A long name is also found inside another word. */
function isNamed(text: string, name: string): boolean {
  if (name.length >= tellingCharactersMin) return text.toLowerCase().includes(name.toLowerCase())
  return /\d/.test(name) && !findWhole(text, name).next().done
}

function cut(text: string): string {
  const kept = keepCharacters(text, relayedCharactersMax)
  return kept === text ? text : `${keepCharacters(text, relayedCharactersMax - 1)}…`
}

/** The beginning of LiteLLM's texts. Such a text may contain the text of another server. */
const opening = 'litellm.'

/** Separates LiteLLM's names of a failure (`litellm.BadRequestError: OpenAIException - `) from its text. */
const colon = 'Exception - '

/**
 * Matches the beginning of LiteLLM's addition to another server's text. The addition has LiteLLM's model and settings.
 */
const addition = /\nmodel=|\n\nLiteLLM: |\. Received Model Group=/

/**
 * Takes the text of a server out of the text of LiteLLM, a proxy that has asked this server. LiteLLM's own text could
 * not be shown, because it names LiteLLM and its provider. Any other text is returned unchanged.
 */
function unwrap(text: string): string {
  const at = text.startsWith(opening) ? text.indexOf(colon) : -1
  if (at === -1) return text
  const [words = ''] = text.slice(at + colon.length).split(addition, 1)
  if (!words.startsWith('{')) return words
  try {
    const { error, message } = JSON.parse(words) as { error?: { message?: unknown }; message?: unknown }
    const said = error?.message ?? message
    return typeof said === 'string' ? said : text
  } catch {
    return text
  }
}

const wordCharacter = /[\p{L}\p{N}_]/u

/** Finds a phrase in a text as whole words, in any case. The time depends on the length of the text alone. */
function* findWhole(text: string, phrase: string): Generator<number> {
  const lowered = lowerCase(text)
  const wanted = lowerCase(phrase)
  for (let at = lowered.indexOf(wanted); at >= 0; at = lowered.indexOf(wanted, at + wanted.length)) {
    const isFree = !wordCharacter.test(text.charAt(at - 1)) && !wordCharacter.test(text.charAt(at + wanted.length))
    if (isFree) yield at
  }
}

/** Replaces the text at the given places. @param length the length of the old text, equal at all places */
function replaceAt(text: string, places: Iterable<number>, length: number, instead: string): string {
  let replaced = ''
  let from = 0
  for (const at of places) {
    replaced += text.slice(from, at) + instead
    from = at + length
  }
  return replaced + text.slice(from)
}

/** Like `toLowerCase`, but every character keeps its position. `toLowerCase` makes two characters of a few capitals. */
function lowerCase(text: string): string {
  const lowered = text.toLowerCase()
  return lowered.length === text.length ? lowered : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** The end of a sentence, which is after its punctuation mark or at the end of a line. */
const sentenceEnd = /(?<=[.!?][)\]"'`]{0,2})\s|[\r\n]/

const parenthesis = / ?\([^()]{1,400}\)/g

/** Words that point a reader to other pages, in a sentence or in the address itself. */
const pointing =
  /\b(?:see|refer|consult|visit|docs?|documentation|guides?|reference|help|support|read more|learn more|more info|more information|more details)\b/i

/**
 * Removes sentences and parentheses that point to the vendor's documentation. The rest of a refusal still says what is
 * wrong (ruling U3). Addresses in other sentences stay. The caller decides whether such a text may be shown.
 */
function withoutDocLinks(text: string): string {
  const bare = text.replace(parenthesis, (remark) => (isDocLink(remark) ? '' : remark))
  const sentences = bare.split(sentenceEnd)
  if (bare === text && !sentences.some(isDocLink)) return text
  return sentences.filter((sentence) => !isDocLink(sentence)).join(' ')
}

function isDocLink(sentence: string): boolean {
  // An address alone in parentheses links to more information about the text before it.
  const remark = sentence.trimStart()
  if (/^\(https?:\/\//.test(remark) && remark.endsWith(')') && !/\s/.test(remark)) return true
  return (sentence.includes('://') || hostName.test(sentence)) && pointing.test(sentence)
}
