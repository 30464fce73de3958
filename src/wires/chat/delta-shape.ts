import { dataOf, type RawFrame, stringBehind } from '../../bytes/frame-cutter.ts'
import { endOfValue, type Range } from '../../bytes/json.ts'
import type { JsonMember } from '../../bytes/scan.ts'
import { placesOf } from '../../bytes/search.ts'
import { serviceMembers } from '../../inference/usage.ts'
import { FrameMould } from '../answers/frame-mould.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { tellingNames } from '../answers/native-answer.ts'
import { decodeString } from '../answers/produced-text.ts'

/** Whether a choice is unfinished, without an error and without counters. */
export function isUnfinished({ error, usage, finish_reason }: Record<string, unknown>): boolean {
  return error == null && usage == null && !finish_reason
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

/** The mould of a chunk with this one text; undefined if the chunk has anything unusual besides its edits. */
export function mouldOf(frame: RawFrame, shown: string, patch: JsonPatch, text: string): FrameMould | undefined {
  const data = patch.bytes.toString('latin1')
  const choices = patch.members.filter(({ key }) => key === 'choices')
  const edits = patch.edits()
  const keys = new Set(patch.members.map(({ key }) => key))
  if (choices.length !== 1 || keys.size !== patch.members.length || dataOf(frame) !== data || data.includes('\n'))
    return undefined
  const [{ start, end }] = choices as [JsonMember]
  const inside = data.slice(start, end)
  const place = placeOfText(inside, text)
  if (place === undefined) return undefined
  const isCovered = (range: Range) => edits.some((edit) => edit.start <= range.start && edit.end >= range.end)
  // Log probabilities are never read, and differ with each token.
  const found = /"logprobs"\s*:\s*(?=\{)/.exec(inside)
  const from = found ? start + found.index + found[0].length : end
  const logprobs = { start: from, end: found ? endOfValue(data, from) : end }
  const raw = `"${inside.slice(place.start, place.end)}"`
  const texts = Array.from(placesOf(inside, raw), (at) => ({ start: start + at + 1, end: start + at + raw.length - 1 }))
  const others = patch.members.filter(({ key, ...range }) => (telling.has(key) ? isCovered(range) : !looked.has(key)))
  return FrameMould.of({
    ...{ frame, shown, data, edits },
    texts: texts.filter((range) => range.end <= logprobs.start || range.start >= logprobs.end),
    usage: patch.members.find((member) => member.key === 'usage' && isCovered(member)),
    others: found ? [...others, logprobs] : others,
  })
}
