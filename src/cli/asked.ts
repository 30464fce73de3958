/** What is typed before a command may take a value. */
const takesValue = /^--(?:config|store|listen|admin-listen|workers)$/

/** What was typed that is no option and no value of one: the command and its arguments, where options have `=` or a space. */
export function wordsOf(args: readonly string[]): string[] {
  return args.filter((word, at) => !word.startsWith('-') && !takesValue.test(args[at - 1] ?? ''))
}

/** Whether nothing but `serve` can be meant: then no other command need be known, and a start need not read them. */
export function asksToServe(args: readonly string[]): boolean {
  const [first] = wordsOf(args)
  return first === 'serve' || (first === undefined && !args.includes('--help') && !args.includes('-h'))
}
