/** 1 to `most` characters, all of which can be seen. */
export function isShownWhole(text: string, most = 100): boolean {
  return [...text].length <= most && hasNothingUnseen(text)
}

/** A text with invisible characters in it, or blanks around, looks like another text. */
export function hasNothingUnseen(text: string): boolean {
  return /^[^\s\p{C}]([^\p{C}]*[^\s\p{C}])?$/u.test(text)
}
