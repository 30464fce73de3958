import {
  applyEdits,
  findNodeAtLocation,
  modify,
  type ParseError,
  parse,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser'
import type { ValueChange, ValuePath } from './changes.ts'

/** Reads JSON, with or without comments. @throws Error with the line of the first mistake */
export function readJsonc(text: string): unknown {
  const errors: ParseError[] = []
  const value: unknown = parse(text, errors, { allowTrailingComma: true, allowEmptyContent: true })
  const [error] = errors
  if (error) {
    const line = text.slice(0, error.offset).split('\n').length
    throw new Error(`line ${line} is not JSON (${printParseErrorCode(error.error)})`)
  }
  return value ?? {}
}

/**
 * The longest line that is formatted, in characters. Formatting takes a time that grows with the square of the line's
 * length. If the file has a longer line, values are inserted without line breaks.
 */
const formattedMax = 20_000

/** Applies changes to the text. Comments, blank lines and the order of keys stay the same. */
export function editJsonc(text: string, changes: readonly ValueChange[]): string {
  const formattingOptions = {
    insertSpaces: !/^\t/m.test(text),
    tabSize: /^( +)\S/m.exec(text)?.[1]?.length ?? 2,
    eol: text.includes('\r\n') ? '\r\n' : '\n',
  }
  const options = text.split('\n').some(({ length }) => length > formattedMax) ? {} : { formattingOptions }
  let edited = text
  for (const { place, value } of changes) {
    // Removes members that are undefined, because the library would write them as an empty text.
    const plain: unknown = value === undefined ? undefined : JSON.parse(JSON.stringify(value))
    const put = (into: string) => applyEdits(into, modify(into, [...place], plain, options))
    edited = putBehindComment(edited, place, put) ?? put(edited)
  }
  return edited
}

/**
 * Inserts a new member after a comment on the last member's line. The library would insert it before the comment, so
 * the comment is removed and put back. Returns undefined if there is no such comment, or if the member exists.
 */
function putBehindComment(text: string, place: ValuePath, put: (text: string) => string): string | undefined {
  const root = parseTree(text, [], { allowTrailingComma: true })
  const parent = root && findNodeAtLocation(root, place.slice(0, -1))
  const last = parent?.children?.at(-1)
  if (!root || !last || findNodeAtLocation(root, [...place])) return undefined
  const end = last.offset + last.length
  const behind = text[end] === ',' ? end + 1 : end
  const [comment] = /^[ \t]*(?:\/\/[^\r\n]*|\/\*[^\r\n]*?\*\/)(?=[ \t]*[\r\n])/.exec(text.slice(behind)) ?? []
  if (comment === undefined) return undefined
  const edited = put(text.slice(0, behind) + text.slice(behind + comment.length))
  if (!edited.startsWith(`${text.slice(0, end)},`)) return undefined
  return `${text.slice(0, end)},${comment}${edited.slice(end + 1)}`
}
