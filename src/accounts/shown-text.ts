/** Whether a text has 1 to `most` characters, all of them visible. */
export function isShownWhole(text: string, most = 100): boolean {
  return [...text].length <= most && hasNothingUnseen(text)
}

/** Whether a text has no invisible characters and no blanks at its ends, which would make it look like another text. */
export function hasNothingUnseen(text: string): boolean {
  return /^[^\s\p{C}]([^\p{C}]*[^\s\p{C}])?$/u.test(text)
}
