/** The global options that may be followed by a value. */
const takesValue = /^--(?:config|store|listen|admin-listen|workers)$/

/** Returns the words that are neither options nor their values: the command and its arguments. */
export function wordsOf(args: readonly string[]): string[] {
  return args.filter((word, at) => !word.startsWith('-') && !takesValue.test(args[at - 1] ?? ''))
}

/** Whether only `serve` can be meant. Then no other command is loaded, which makes a start quicker. */
export function asksToServe(args: readonly string[]): boolean {
  const [first] = wordsOf(args)
  return first === 'serve' || (first === undefined && !args.includes('--help') && !args.includes('-h'))
}
