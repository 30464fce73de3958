import { randomInt } from 'node:crypto'

/** The digits of ids and keys: 0 to 9, A to Z, a to z. */
export const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Returns random letters and digits, each equally likely. */
export function randomText(chars: number): string {
  let text = ''
  for (let i = 0; i < chars; i++) text += base62[randomInt(base62.length)]
  return text
}
