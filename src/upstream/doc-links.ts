import { hostName } from './revealing.ts'

/** Where a sentence ends: behind its mark, or at a line's end. */
const sentenceEnd = /(?<=[.!?][)\]"'`]{0,2})\s|[\r\n]/

const parenthesis = / ?\([^()]{1,400}\)/g

/** The words of those who send a reader elsewhere, in a sentence or in the address itself. */
const pointing =
  /\b(?:see|refer|consult|visit|docs?|documentation|guides?|reference|help|support|read more|learn more|more info|more information|more details)\b/i

/**
 * A model's text without the sentences, and the remarks in parentheses, that send the reader to its vendor's
 * documentation: what is left says what is wrong as well (ruling U3). Any other address stays, to be judged.
 */
export function withoutDocLinks(text: string): string {
  const bare = text.replace(parenthesis, (remark) => (isDocLink(remark) ? '' : remark))
  const sentences = bare.split(sentenceEnd)
  if (bare === text && !sentences.some(isDocLink)) return text
  return sentences.filter((sentence) => !isDocLink(sentence)).join(' ')
}

function isDocLink(sentence: string): boolean {
  // Nothing but an address in parentheses says where to read on what stands before it.
  const remark = sentence.trimStart()
  if (/^\(https?:\/\//.test(remark) && remark.endsWith(')') && !/\s/.test(remark)) return true
  return (sentence.includes('://') || hostName.test(sentence)) && pointing.test(sentence)
}
