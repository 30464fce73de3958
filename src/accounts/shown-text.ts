/** Whether a text has 1 to `most` characters, all of them visible. */
export function isShownWhole(text: string, most = 100): boolean {
  return [...text].length <= most && hasNothingUnseen(text)
}

/**
 * Whether a text has no invisible characters, no line breaks and no blanks at its ends, which would make it look like
 * another text. Variation selectors are allowed, because emoji need them.
 */
export function hasNothingUnseen(text: string): boolean {
  return !unseen.test(text) && /^\S(.*\S)?$/u.test(text)
}

/** Unassigned and control characters, line separators, the empty Braille pattern, and characters such as U+3164. */
const unseen = /[\p{C}\p{Zl}\p{Zp}\u2800[\p{Default_Ignorable_Code_Point}--\p{Variation_Selector}]]/v
