import { isDeepStrictEqual } from 'node:util'
import { asObject } from '../../../bytes/json.ts'
import type { SettingsFile } from '../../../programs/program.ts'
import { applyChanges, findChanges } from './changes.ts'
import { editJsonc, readJsonc } from './jsonc.ts'
import { editToml, readToml } from './toml.ts'

const formats = {
  json: { read: readJsonc, edit: editJsonc },
  toml: { read: readToml, edit: editToml },
}

const byteOrderMark = '\ufeff'

/**
 * Inserts our settings into the text of a person's file. All other characters stay. The new text is parsed again and
 * compared with the intended values.
 * @throws Error with the reason if the text cannot be edited safely; the person must then edit it by hand
 */
export function editSettings(before: string, file: SettingsFile): string {
  if (file.format === 'own') return file.text
  const { read, edit } = formats[file.format]
  const mark = before.startsWith(byteOrderMark) ? byteOrderMark : ''
  const text = before.slice(mark.length)
  if (text.trim() === '') return mark + file.text
  const theirs = read(text)
  const ours = read(file.text)
  if (Array.isArray(ours) ? !Array.isArray(theirs) : !asObject(theirs))
    throw new Error(`it is no ${Array.isArray(ours) ? 'list' : 'map'} of settings`)
  const changes = findChanges(theirs, ours, file)
  if (changes.length === 0) return before
  const after = edit(text, changes)
  if (!isDeepStrictEqual(plain(read(after)), plain(applyChanges(theirs, changes))))
    throw new Error('it is written in a way that is not safely edited')
  return mark + after
}

/** Copies tables as plain objects, because the TOML parser's tables have no prototype. Dates are kept as they are. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  const object = asObject(value)
  if (!object || value instanceof Date) return value
  return Object.fromEntries(Object.entries(object).map(([key, inner]) => [key, plain(inner)]))
}
