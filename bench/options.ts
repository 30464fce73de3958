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
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exit(1)
  }
  process.exit()
}
