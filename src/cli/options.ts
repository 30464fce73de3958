import { CommanderError, InvalidArgumentError, Option } from 'commander'

/** Options that may stand before or after any command. */
export type GlobalOptions = { config?: string; store?: string; json?: boolean }

/** Makes an error of wrong usage that the parser of options cannot find: exit code 2. @param message the rest of a sentence */
export function usage(message: string): CommanderError {
  return new CommanderError(2, 'triwire.usage', `error: ${message}`)
}

const unitsMs: Record<string, number> = { ms: 1, s: 1_000, m: 60_000 }

/** Makes the option `--timeout`, in ms. @param usual the default, as it would be typed */
export function timeoutOption(description: string, usual: string): Option {
  const read = (text: string) => {
    const [, count, unit] = /^([1-9]\d{0,5})(ms|s|m)$/.exec(text) ?? []
    if (!count || !unit) throw new InvalidArgumentError(`Write it like 500ms, ${usual} or 2m.`)
    return Number(count) * unitsMs[unit]!
  }
  return new Option('--timeout <time>', description).argParser(read).default(read(usual), usual)
}
