import { dataOf, type RawFrame, stringBehind } from '../../bytes/frame-cutter.ts'
import type { Range } from '../../bytes/json.ts'
import { type JsonMember, scanObject } from '../../bytes/scan.ts'
import { placesOf } from '../../bytes/search.ts'
import { serviceMembers } from '../../inference/usage.ts'
import { FrameMould } from '../answers/frame-mould.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { tellingNames } from '../answers/native-answer.ts'
import { decodeString } from '../answers/produced-text.ts'
import { objectsOf } from '../answers/read-answer.ts'

/** Whether a chunk, read without the beginning that all share, is a delta and nothing that has to be looked at. */
export function isOrdinary(chunk: Record<string, unknown>): boolean {
  const { choices, error, usage } = chunk
  const hasHead = ['id', 'model', ...serviceMembers, ...tellingNames].some((name) => name in chunk)
  const isList = Array.isArray(choices) && objectsOf(choices).every((one) => isUnfinished(one) && one['index'] != null)
  return error == null && usage == null && !hasHead && isList
}

/** Whether a choice goes on and has no error and no counters. */
export function isUnfinished({ error, usage, finish_reason }: Record<string, unknown>): boolean {
  return error == null && usage == null && !finish_reason
}

/** The members that may hold a delta's text. That of a reasoning model has one of several names. */
const textKeys = ['content', 'arguments', 'reasoning_content', 'reasoning', 'refusal', 'thinking']

/** Finds the place of this text in a chunk, without its quotes. */
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

/** Members that are looked at in each chunk: a chunk with another value has to be. */
const headKeys = ['id', 'object', 'created', 'model', 'choices', 'error', 'usage', ...serviceMembers]
const looked = new Set(headKeys)
const telling = new Set(tellingNames)

/** The mould of a chunk that brings this one text, if the chunk is ordinary but for its edits. */
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
  const raw = `"${inside.slice(place.start, place.end)}"`
  const texts = Array.from(placesOf(inside, raw), (at) => ({ start: start + at + 1, end: start + at + raw.length - 1 }))
  const isCovered = (range: Range) => edits.some((edit) => edit.start <= range.start && edit.end >= range.end)
  return FrameMould.of({
    ...{ frame, shown, data, edits, texts },
    usage: patch.members.find((member) => member.key === 'usage' && isCovered(member)),
    others: patch.members.filter((member) => (telling.has(member.key) ? isCovered(member) : !looked.has(member.key))),
  })
}

/** Like `startsWith`, which compares one character at a time: four times as slow for beginnings as long as these. */
export function isBegunWith(text: string, start: string): boolean {
  return text.slice(0, start.length) === start
}

const headMembers = ['id', 'object', 'created', 'model', ...tellingNames]

/** A chunk's frame up to its choices, if the members that are edited stand before them, and all of it in one line. */
export function sharedBeginning(frame: RawFrame): string | undefined {
  const data = dataOf(frame) ?? ''
  const start = frame.indexOf(data)
  if (data === '' || start < 0) return undefined
  const members = scanObject(Buffer.from(data, 'latin1'))
  const choices = members.findIndex((member) => member.key === 'choices')
  const headEnds = members.findLastIndex(({ key }) => headMembers.includes(key))
  if (choices < 0 || headEnds > choices) return undefined
  return frame.slice(0, start + members[choices]!.keyStart)
}
