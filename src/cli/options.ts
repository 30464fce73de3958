import { CommanderError, InvalidArgumentError, Option } from 'commander'

/** Options that may stand before or after any command. */
export type GlobalOptions = { config?: string; store?: string; json?: boolean }

/** Makes an error for wrong usage, with exit code 2. @param message the text after `error: ` */
export function usage(message: string): CommanderError {
  return new CommanderError(2, 'triwire.usage', `error: ${message}`)
}

const unitsMs: Record<string, number> = { ms: 1, s: 1_000, m: 60_000 }

/** Makes the option `--timeout`, whose value is in ms. @param usual the default, as a person would type it */
export function timeoutOption(description: string, usual: string): Option {
  const read = (text: string) => {
    const [, count, unit] = /^([1-9]\d{0,5})(ms|s|m)$/.exec(text) ?? []
    if (!count || !unit) throw new InvalidArgumentError(`Write it like 500ms, ${usual} or 2m.`)
    return Number(count) * unitsMs[unit]!
  }
  return new Option('--timeout <time>', description).argParser(read).default(read(usual), usual)
}

/** Makes a parser for an integer option. @param more a text after the range in the error message */
export function numberFrom(least: number, most: number, more = ''): (text: string) => number {
  return (text) => {
    if (!/^(?:0|[1-9]\d{0,6})$/.test(text) || Number(text) < least || Number(text) > most)
      throw new InvalidArgumentError(`It is a number from ${least} to ${most}${more}.`)
    return Number(text)
  }
}

/** Matches an option that stands before a command and has a value in the next word. */
const takesValue = /^--(?:config|store|listen|admin-listen|workers)$/

/** Returns the words that are neither options nor values of options: the command and its arguments. */
export function wordsOf(args: readonly string[]): string[] {
  return args.filter((word, at) => !word.startsWith('-') && !takesValue.test(args[at - 1] ?? ''))
}

/** Whether the command is `serve`. If so, no other command is loaded, so that a server starts sooner. */
export function asksToServe(args: readonly string[]): boolean {
  const [first] = wordsOf(args)
  return first === 'serve' || (first === undefined && !args.includes('--help') && !args.includes('-h'))
}
