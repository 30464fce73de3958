import { dataOf, type RawFrame, stringBehind } from '../../bytes/frame-cutter.ts'
import { endOfValue, placesOf, type Range } from '../../bytes/json.ts'
import type { JsonMember } from '../../bytes/scan.ts'
import { serviceMembers } from '../../inference/usage.ts'
import { FrameMould } from '../answers/frame-mould.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { decodeString, tellingNames } from '../answers/native-answer.ts'

/** Whether a choice is unfinished and without an error. */
export function isUnfinished({ error, finish_reason }: Record<string, unknown>): boolean {
  return error == null && !finish_reason
}

/** The members that may hold a delta's text. Reasoning has several names. */
const textKeys = ['content', 'arguments', 'reasoning_content', 'reasoning', 'refusal', 'thinking']

/** Finds the position of this text in a chunk, without its quotes. */
function placeOfText(tail: string, text: string): (Range & { key: string }) | undefined {
  for (const key of textKeys) {
    const needle = `"${key}":`
    const raw = stringBehind(tail, needle)
    if (raw === '' || decodeString(raw) !== text) continue
    const start = tail.indexOf('"', tail.indexOf(needle) + needle.length) + 1
    return { key, start, end: start + raw.length }
  }
  return undefined
}

/** Members with a meaning of their own. A chunk in which one of them differs must be parsed. */
const headKeys = ['id', 'object', 'created', 'model', 'choices', 'error', 'usage', ...serviceMembers]
const looked = new Set(headKeys)
const telling = new Set(tellingNames)

/** Members inside choices that no code reads, and that differ with each token. */
const unreadMember = /"(?:logprobs|token_ids?|content_filter_offsets)"\s*:\s*(?=[[{\d])/g

/**
 * Makes the mould of a chunk, by which later chunks of its kind are edited without a parse. Undefined if the chunk is
 * unusual.
 * @param said the text of each choice; undefined for a choice that adds nothing to the answer
 */
export function mouldOf(
  frame: RawFrame,
  shown: string,
  patch: JsonPatch,
  said: readonly (string | undefined)[],
): FrameMould | undefined {
  const data = patch.bytes.toString('latin1')
  const choices = patch.members.filter(({ key }) => key === 'choices')
  const edits = patch.edits()
  const keys = new Set(patch.members.map(({ key }) => key))
  if (choices.length !== 1 || keys.size !== patch.members.length || dataOf(frame) !== data || data.includes('\n'))
    return undefined
  const [{ start, end }] = choices as [JsonMember]
  const inside = data.slice(start, end)
  const isIn = (range: Range, wider: Range) => wider.start <= range.start && wider.end >= range.end
  const isCovered = (range: Range) => edits.some((edit) => isIn(range, edit))
  const unread: Range[] = []
  for (const found of inside.matchAll(unreadMember)) {
    const from = start + found.index + found[0].length
    const range = { start: from, end: endOfValue(data, from) }
    if (!unread.some((wider) => isIn(range, wider))) unread.push(range)
  }
  const texts: Range[][] = []
  const usages = patch.members.filter((member) => member.key === 'usage' && isCovered(member))
  const elements = patch.elementsAt({ start, end })
  if (elements.length !== said.length) return undefined
  for (const [i, choice] of elements.entries()) {
    for (const member of patch.membersAt(choice)) if (member.key === 'usage' && isCovered(member)) usages.push(member)
    const text = said[i]
    if (text === undefined) continue
    const own = data.slice(choice.start, choice.end)
    const place = placeOfText(own, text)
    if (place === undefined) return undefined
    const raw = `"${own.slice(place.start, place.end)}"`
    const ranges = Array.from(placesOf(own, raw), (at) => ({
      start: choice.start + at + 1,
      end: choice.start + at + raw.length - 1,
    }))
    texts.push(ranges.filter((range) => !unread.some((wider) => isIn(range, wider))))
  }
  const others = patch.members.filter(({ key, ...range }) =>
    telling.has(key) || key === 'id' ? isCovered(range) : !looked.has(key),
  )
  return FrameMould.of({
    ...{ frame, shown, data, edits, texts },
    usages,
    times: patch.members.filter(({ key, ...range }) => key === 'created' && !isCovered(range)),
    others: [...others, ...unread],
  })
}
