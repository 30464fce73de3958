import { applyEdits, modify, type ParseError, parse, printParseErrorCode } from 'jsonc-parser'
import type { Change } from './changes.ts'

/** @throws Error for what is neither JSON nor JSON with comments, with the line */
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

/** The text with the changes in it; comments, blank lines and the order of keys stay as they are. */
export function editJsonc(text: string, changes: readonly Change[]): string {
  const formattingOptions = {
    insertSpaces: !/^\t/m.test(text),
    tabSize: /^( +)\S/m.exec(text)?.[1]?.length ?? 2,
    eol: text.includes('\r\n') ? '\r\n' : '\n',
  }
  let edited = text
  for (const { place, value } of changes) {
    // A key whose value is undefined would be written as nothing at all.
    const plain: unknown = value === undefined ? undefined : JSON.parse(JSON.stringify(value))
    edited = applyEdits(edited, modify(edited, [...place], plain, { formattingOptions }))
  }
  return edited
}
