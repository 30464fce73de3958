import { dataOf, type RawFrame, stringBehind } from '../../bytes/frame-cutter.ts'
import { endOfString, type Range } from '../../bytes/json.ts'
import { type JsonMember, scanObject } from '../../bytes/scan.ts'
import { serviceMembers } from '../../inference/usage.ts'
import { FrameMould } from '../answers/frame-mould.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { tellingNames } from '../answers/native-answer.ts'
import { decodeString } from '../answers/produced-text.ts'
import { objectsOf } from '../answers/read-answer.ts'

/**
 * The bytes around the text of an ordinary delta, quotes included. They are the same in most chunks of a stream, so
 * that the text of the next chunk is found by comparison. They are learned from a parsed chunk that brings that one
 * text.
 */
export type DeltaShape = { start: string; end: string; notBehind: RegExp }

/**
 * Signs after the text that a chunk may be more than an ordinary delta. They are members that are looked at, keys that
 * are not spelled plainly, and another choice. In doubt the chunk is parsed.
 */
const special = String.raw`"(?:error|model|id|delta|${[...serviceMembers, ...tellingNames].join('|')})"|"(?:finish_reason|usage)"(?!\s*:\s*null)|\\u`

/** Members that may bring text of their own beside the one that is known. A mirror of reasoning brings none. */
const texts = String.raw`"(?:content|refusal|arguments|name)"\s*:\s*(?:"[^"]|[{[])`
const reasonings = String.raw`"(?:reasoning\w*|thinking)"\s*:\s*(?:"[^"]|[{[])`
const behindText = new RegExp(`${special}|${texts}|${reasonings}`, 'g')
const behindReasoning = new RegExp(`${special}|${texts}`, 'g')

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

/** The shape of an ordinary chunk, given without the beginning that all share, that brings this one text. */
export function shapeOf(tail: RawFrame, text: string): DeltaShape | undefined {
  const place = placeOfText(tail, text)
  if (place === undefined) return undefined
  const { key, start, end } = place
  const isReasoning = /reasoning|thinking/.test(key)
  return { start: tail.slice(0, start), end: tail.slice(end), notBehind: isReasoning ? behindReasoning : behindText }
}

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
  const place = placeOfText(data.slice(start, end), text)
  if (place === undefined) return undefined
  const isCovered = (range: Range) => edits.some((edit) => edit.start <= range.start && edit.end >= range.end)
  return FrameMould.of({
    ...{ frame, shown, data, edits, text: { start: start + place.start, end: start + place.end } },
    usage: patch.members.find((member) => member.key === 'usage' && isCovered(member)),
    others: patch.members.filter((member) => (telling.has(member.key) ? isCovered(member) : !looked.has(member.key))),
  })
}

/**
 * The text of a chunk of this shape, as it is written there; undefined for any other. The bytes after the text may
 * differ.
 */
export function textWithin(tail: RawFrame, { start, end, notBehind }: DeltaShape): string | undefined {
  if (!isBegunWith(tail, start)) return undefined
  const at = endOfString(tail, start.length - 1)
  if (tail.slice(at) !== end) {
    notBehind.lastIndex = at
    if (at === tail.length || notBehind.test(tail)) return undefined
  }
  return tail.slice(start.length, at)
}

/** The bytes around the text, in frames that differ in nothing else. */
export type Surrounding = { start: string; end: string }

/** The texts of a piece that is nothing but whole frames with these around their text; undefined for any other. */
export function textsBetween(piece: string, { start, end }: Surrounding): string[] | undefined {
  const endsAt = piece.length - end.length
  if (endsAt < start.length || !isBegunWith(piece, start) || piece.slice(endsAt) !== end) return undefined
  const inner = piece.slice(start.length, endsAt)
  const texts = inner.includes('\n') ? inner.split(end + start) : [inner]
  return texts.every(isInside) ? texts : undefined
}

/** Like `startsWith`, which compares one character at a time: four times as slow for beginnings as long as these. */
export function isBegunWith(text: string, start: string): boolean {
  return text.slice(0, start.length) === start
}

/** Whether this is the inside of one string: another frame would show by its line ends, another member by its quotes. */
function isInside(raw: string): boolean {
  return !raw.includes('\n') && (!raw.includes('"') || endOfString(`"${raw}"`, 0) === raw.length + 1)
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
