import { type AST, getStaticTOMLValue, ParseError, parseTOML } from 'toml-eslint-parser'
import { asObject } from '../../../bytes/json.ts'
import type { ValueChange, ValuePath } from './changes.ts'

/** Reads TOML. @throws Error with the line if the text is not TOML */
export function readToml(text: string): unknown {
  try {
    return getStaticTOMLValue(parseTOML(text))
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    throw new Error(`line ${error.lineNumber} is not TOML (${error.message})`)
  }
}

/**
 * Applies changes to the text. All other characters stay, including comments and blank lines.
 * @throws Error if a path leads into a list, or if a value to remove is in an inline table
 */
export function editToml(text: string, changes: readonly ValueChange[]): string {
  let edited = text
  for (const { place, value } of changes.flatMap(leavesOf)) {
    if (place.some((key) => typeof key === 'number')) throw new Error('it has a list where a table is wanted')
    edited = value === undefined ? remove(edited, place) : set(edited, place, writeValue(value))
  }
  return edited
}

/** Splits an added table into its values, because each value gets a line of its own. */
function leavesOf({ place, value }: ValueChange): ValueChange[] {
  const table = asObject(value)
  return table
    ? Object.entries(table).flatMap(([key, one]) => leavesOf({ place: [...place, key], value: one }))
    : [{ place, value }]
}

type TomlEntry = {
  node: AST.TOMLKeyValue
  place: ValuePath
  /** The parent of the entry: the head of the file, a table with a header, or an inline table. */
  parent: { place: ValuePath; node: AST.TOMLTopLevelTable | AST.TOMLTable | AST.TOMLInlineTable }
}

function set(text: string, place: ValuePath, value: string): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const top = parseTOML(text).body[0]
  const entries = entriesOf(top)
  const there = entries.find((entry) => isSame(entry.place, place))
  if (there) return splice(text, there.node.value.range, value)
  const table = place.slice(0, -1)
  const inline = entries.find(({ node, place: at }) => node.value.type === 'TOMLInlineTable' && isBelow(place, at))
  if (inline) return setInline(text, inline, place, value)
  // A table made of dotted keys has no header, so a new key follows its last key.
  const dotted = entries.findLast(({ place: at, parent }) => isBelow(at, table) && !isWithin(parent.place, table))
  if (dotted && table.length > 0) {
    const line = `${writeKey(place.slice(dotted.parent.place.length))} = ${value}`
    return insertBehind(text, dotted.node.range[1], line, eol)
  }
  if (table.length === 0) return setAtHead(text, top, `${writeKey(place)} = ${value}`, eol)
  const header = tablesOf(top).find((one) => one.kind === 'standard' && isSame(one.resolvedKey, table))
  const line = `${writeKey(place.slice(-1))} = ${value}`
  if (header) return insertBehind(text, (header.body.at(-1) ?? header.key).range[1], line, eol)
  const gap = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol
  return `${text}${gap}[${writeKey(table)}]${eol}${line}${eol}`
}

/** Adds a top-level key. It must come before the first table. */
function setAtHead(text: string, top: AST.TOMLTopLevelTable, line: string, eol: string): string {
  const last = top.body.findLast((node) => node.type === 'TOMLKeyValue')
  if (last) return insertBehind(text, last.range[1], line, eol)
  // If a blank line follows a comment at the head, the key is added after the comment. Otherwise the comment belongs to
  // the line below it.
  const head = /^(?:[ \t]*#[^\n]*\n)+(?=[ \t]*\r?\n)/.exec(text)?.[0] ?? ''
  const rest = text.slice(head.length)
  return `${head}${line}${eol}${rest === '' || /^\r?\n/.test(rest) ? '' : eol}${rest}`
}

function setInline(text: string, { node, place: at }: TomlEntry, place: ValuePath, value: string): string {
  const inline = node.value as AST.TOMLInlineTable
  const written = `${writeKey(place.slice(at.length))} = ${value}`
  const last = inline.body.at(-1)
  if (!last) return splice(text, inline.range, `{ ${written} }`)
  return splice(text, [last.range[1], last.range[1]], `, ${written}`)
}

function remove(text: string, place: ValuePath): string {
  const entries = entriesOf(parseTOML(text).body[0])
  const there = entries.find((entry) => isSame(entry.place, place))
  if (!there) return text
  const { node, parent } = there
  if (parent.node.type === 'TOMLInlineTable') throw new Error('it has this in an inline table')
  const start = text.lastIndexOf('\n', node.range[0] - 1) + 1
  const end = text.indexOf('\n', node.range[1])
  return splice(text, [start, end < 0 ? text.length : end + 1], '')
}

function entriesOf(top: AST.TOMLTopLevelTable): TomlEntry[] {
  return [...entriesIn(top, []), ...tablesOf(top).flatMap((table) => entriesIn(table, table.resolvedKey))]
}

function entriesIn(node: TomlEntry['parent']['node'], place: ValuePath): TomlEntry[] {
  const body: readonly AST.TOMLNode[] = node.body
  return body
    .filter((one): one is AST.TOMLKeyValue => one.type === 'TOMLKeyValue')
    .flatMap((one) => {
      const at = [...place, ...one.key.keys.map((key) => (key.type === 'TOMLBare' ? key.name : key.value))]
      const entry = { node: one, place: at, parent: { place, node } }
      return one.value.type === 'TOMLInlineTable' ? [entry, ...entriesIn(one.value, at)] : [entry]
    })
}

function tablesOf(top: AST.TOMLTopLevelTable): AST.TOMLTable[] {
  return top.body.filter((node) => node.type === 'TOMLTable')
}

/** Inserts a line after the line that contains an offset. A comment on that line stays there. */
function insertBehind(text: string, offset: number, line: string, eol: string): string {
  const end = text.indexOf('\n', offset)
  if (end < 0) return `${text}${eol}${line}${eol}`
  return splice(text, [end + 1, end + 1], `${line}${eol}`)
}

function splice(text: string, [start, end]: readonly [number, number], put: string): string {
  return text.slice(0, start) + put + text.slice(end)
}

function isSame(one: ValuePath, other: ValuePath): boolean {
  return one.length === other.length && isWithin(one, other)
}

/** Whether a path is `outer` or below it. */
function isWithin(place: ValuePath, outer: ValuePath): boolean {
  return outer.every((key, at) => place[at] === key)
}

function isBelow(place: ValuePath, outer: ValuePath): boolean {
  return place.length > outer.length && isWithin(place, outer)
}

function writeKey(place: ValuePath): string {
  return place
    .map(String)
    .map((key) => (/^[\w-]+$/.test(key) ? key : writeText(key)))
    .join('.')
}

function writeValue(value: unknown): string {
  if (typeof value === 'string') return writeText(value)
  if (typeof value === 'boolean' || Number.isSafeInteger(value)) return String(value)
  if (Array.isArray(value)) return `[${value.map(writeValue).join(', ')}]`
  throw new Error('it cannot take a value of this kind')
}

/** Writes a basic string of TOML. TOML has the escapes of JSON, but DEL must be escaped too. */
function writeText(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', String.raw`\u007F`)
}
