import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'

const help = { help: { type: 'boolean', short: 'h' } } as const

/**
 * Reads the options of a command line. With `--help` or an unknown option, prints the usage and ends the process.
 * @param usage the text for it
 */
export function readOptions<T extends ParseArgsOptionsConfig>(usage: string, options: T) {
  try {
    const { values } = parseArgs<{ options: T & typeof help }>({ options: { ...options, ...help } })
    if (!('help' in values)) return values
    console.log(usage)
  } catch (error) {
    refuse((error as Error).message, usage)
  }
  process.exit()
}

/** Reads whole numbers above zero from the command line. Any other word ends the process, with the usage. */
export function readNumbers(usage: string, ...defaults: number[]): number[] {
  const words = process.argv.slice(2)
  const wrong = words.find((word, at) => !/^[1-9]\d*$/.test(word) || at >= defaults.length)
  if (wrong !== undefined) refuse(`${wrong} is not expected`, usage)
  return defaults.map((value, at) => Number(words[at] ?? value))
}

/** Ends the process because of a wrong argument. */
export function refuse(message: string, usage: string): never {
  console.error(`${message}\n\n${usage}`)
  process.exit(2)
}
