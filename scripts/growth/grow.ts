import type { ClientWire } from '../../src/catalog/wire-names.ts'

/** An input that can be enlarged in one place. @property grow returns the input with `bytes` more bytes there */
export type Growth = { where: string; grow: (bytes: number) => string }

type Json = Record<string, unknown>
type Place = readonly (string | number)[]

/** The contents of long texts: characters to escape, beginnings of tokens, and patterns that slow down searches. */
const fillers: Record<string, string> = {
  words: 'fox jumps ',
  quotes: '"',
  backslashes: '\\',
  controls: '\u0001',
  emoji: '😀',
  halves: '\ud83d',
  spaces: ' ',
  lines: '\n',
  tags: '<think>',
  brackets: '{"a":[',
  digits: '1',
  keys: 'sk-',
  data: 'data:image/png;base64,',
}

/** Members whose values must differ between copies and agree within a copy, so that each result belongs to its call. */
const identifying = new Set(['id', 'call_id', 'tool_call_id', 'tool_use_id', 'item_id', 'name'])

/** Enlarges every list, object and text of a body, each by itself. */
export function* growthsOf(body: unknown): Iterable<Growth> {
  for (const [place, value] of placesIn(body))
    for (const [how, enlarge] of waysToEnlarge(value))
      yield {
        where: `${place.join('.') || 'all'}, ${how}`,
        grow: (bytes) => JSON.stringify(withValue(body, place, enlarge(bytes))),
      }
}

/** Enlarges the values of each frame, repeats each frame, and repeats each run of frames after the first. */
export function* growthsOfStream(wire: ClientWire, stream: string): Iterable<Growth> {
  const frames = stream.split(/(?<=\n\n)/)
  for (const [at, frame] of frames.entries()) {
    const [before, behind] = [frames.slice(0, at).join(''), frames.slice(at + 1).join('')]
    yield {
      where: `frame ${at}, repeated`,
      grow: (bytes) => before + frame.repeat(timesOf(frame.length, bytes)) + behind,
    }
    if (at > 1) yield { where: `frames 1 to ${at}, repeated`, grow: (bytes) => repeatRun(wire, frames, at, bytes) }
    const event = eventOf(frame)
    if (!event) continue
    for (const { where, grow } of growthsOf(event))
      yield {
        where: `frame ${at}, ${where}`,
        grow: (bytes) => before + frame.replace(/data:.*/, () => `data: ${grow(bytes)}`) + behind,
      }
  }
}

function* waysToEnlarge(value: unknown): Iterable<[how: string, enlarge: (bytes: number) => unknown]> {
  const length = JSON.stringify(value).length
  if (typeof value === 'string') {
    yield ['repeated', (bytes) => value.repeat(timesOf(length, bytes))]
    for (const [how, filler] of Object.entries(fillers)) {
      const written = JSON.stringify(filler).length - '""'.length
      yield [how, (bytes) => value + filler.repeat(timesOf(written, bytes))]
    }
  } else if (Array.isArray(value)) {
    const copies = (times: number) => Array.from({ length: times }, (_, copy) => renamed(value, copy)).flat()
    if (value.length > 0) yield ['repeated', (bytes) => copies(timesOf(length, bytes))]
  } else {
    const members = (count: number) => Array.from({ length: count }, (_, i) => [`member_${i}`, 1])
    const written = '"member_12345":1,'.length
    yield ['members', (bytes) => ({ ...(value as Json), ...Object.fromEntries(members(timesOf(written, bytes))) })]
  }
}

/** Repeats a run of frames. The blocks, items or calls of each copy are numbered after those of the one before. */
function repeatRun(wire: ClientWire, frames: readonly string[], until: number, bytes: number): string {
  const run = frames.slice(1, until)
  const span = Math.max(0, ...run.flatMap((frame) => numbersOf(wire, eventOf(frame)).map(({ is }) => is + 1)))
  const copies = Array.from({ length: timesOf(run.join('').length, bytes) }, (_, copy) =>
    run.map((frame) => frame.replace(/data: (\{.*)/, (_, text) => `data: ${shifted(wire, text, copy, span)}`)).join(''),
  )
  return frames[0] + copies.join('') + frames.slice(until).join('')
}

function shifted(wire: ClientWire, text: string, copy: number, span: number): string {
  const event = renamed(JSON.parse(text), copy) as Json
  for (const { of, name, is } of numbersOf(wire, event)) of[name] = is + copy * span
  return JSON.stringify(event)
}

/** The numbers in an event that say which part of the answer it is about. */
function numbersOf(wire: ClientWire, event: Json | undefined): { of: Json; name: string; is: number }[] {
  const name = wire === 'responses' ? 'output_index' : 'index'
  const numbered = wire === 'chat' ? callsIn(event) : [event]
  return numbered.flatMap((of) => (typeof of?.[name] === 'number' ? [{ of, name, is: of[name] }] : []))
}

function callsIn(event: Json | undefined): Json[] {
  const choices = event?.choices as { delta?: { tool_calls?: Json[] } }[] | undefined
  return choices?.flatMap(({ delta }) => delta?.tool_calls ?? []) ?? []
}

function eventOf(frame: string): Json | undefined {
  const text = /^data: (\{.*)/m.exec(frame)?.[1]
  return text === undefined ? undefined : JSON.parse(text)
}

function* placesIn(value: unknown, place: Place = []): Iterable<[Place, unknown]> {
  if (typeof value === 'string') yield [place, value]
  if (typeof value !== 'object' || value === null) return
  yield [place, value]
  for (const [key, member] of Object.entries(value)) yield* placesIn(member, [...place, key])
}

function withValue(value: unknown, [key, ...rest]: Place, other: unknown): unknown {
  if (key === undefined) return other
  const changed = Array.isArray(value) ? [...value] : { ...(value as Json) }
  return Object.assign(changed, { [key]: withValue((value as Json)[key], rest, other) })
}

function renamed(value: unknown, copy: number): unknown {
  const name = (key: string, member: unknown) =>
    identifying.has(key) && typeof member === 'string' ? `${member}_${copy}` : member
  return JSON.parse(JSON.stringify(value), name)
}

function timesOf(length: number, bytes: number): number {
  return Math.ceil(bytes / length)
}
