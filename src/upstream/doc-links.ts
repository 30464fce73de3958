import { hostName } from './revealing.ts'

/** The end of a sentence: after its mark, or at the end of a line. */
const sentenceEnd = /(?<=[.!?][)\]"'`]{0,2})\s|[\r\n]/

const parenthesis = / ?\([^()]{1,400}\)/g

/** Words that point a reader to other pages, in a sentence or in the address itself. */
const pointing =
  /\b(?:see|refer|consult|visit|docs?|documentation|guides?|reference|help|support|read more|learn more|more info|more information|more details)\b/i

/**
 * Removes sentences and parentheses that point to the vendor's documentation. The rest of a refusal still says what is
 * wrong (ruling U3). Other addresses stay in the text, which the caller then judges.
 */
export function withoutDocLinks(text: string): string {
  const bare = text.replace(parenthesis, (remark) => (isDocLink(remark) ? '' : remark))
  const sentences = bare.split(sentenceEnd)
  if (bare === text && !sentences.some(isDocLink)) return text
  return sentences.filter((sentence) => !isDocLink(sentence)).join(' ')
}

function isDocLink(sentence: string): boolean {
  // An address alone in parentheses is a link to more about the text before it.
  const remark = sentence.trimStart()
  if (/^\(https?:\/\//.test(remark) && remark.endsWith(')') && !/\s/.test(remark)) return true
  return (sentence.includes('://') || hostName.test(sentence)) && pointing.test(sentence)
}
