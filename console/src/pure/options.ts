type Option<T extends string> = readonly [value: T, label: string]

/**
 * Adds the value of a field to its options if none of them has it. Without it the field would look empty. An address may
 * have a value that is no longer listed. The value may also be on a later page of a list.
 */
export function withChosen<T extends string>(options: readonly Option<T>[], value: T): readonly Option<T>[] {
  return options.some(([option]) => option === value) ? options : [...options, [value, value]]
}
