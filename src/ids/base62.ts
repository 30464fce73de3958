import { randomInt } from 'node:crypto'

/** Digits, capitals, small letters: what ids and keys are written in. */
export const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Letters and digits by chance, none likelier than another. */
export function randomText(chars: number): string {
  let text = ''
  for (let i = 0; i < chars; i++) text += base62[randomInt(base62.length)]
  return text
}
