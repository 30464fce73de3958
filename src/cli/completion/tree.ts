import type { Command, Option } from 'commander'

/** The words that may follow at one point of the command line. */
export type CompletionPoint = {
  /** The commands that lead to the point, separated by blanks; empty for the program itself. */
  path: string
  /** The next commands, and the words of an argument that has a fixed set of them. */
  commands: readonly { name: string; about: string }[]
  /** The options here, with the global ones. */
  options: readonly { name: string; about: string; value: 'none' | 'file' | 'text'; choices: readonly string[] }[]
}

/** Returns every point of a program, each before the points below it. */
export function placesOf(program: Command): CompletionPoint[] {
  const global = optionsOf(program)
  return visit(program, '')

  function visit(command: Command, path: string): CompletionPoint[] {
    const { commands } = command
    const here: CompletionPoint = {
      path,
      commands: [
        ...commands.map((one) => ({ name: one.name(), about: one.description() })),
        ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
          argChoices.map((name) => ({ name, about: description })),
        ),
      ],
      options: path === '' ? global : [...optionsOf(command), ...global],
    }
    return [here, ...commands.flatMap((one) => visit(one, `${path} ${one.name()}`.trim()))]
  }
}

function optionsOf(command: Command): CompletionPoint['options'] {
  const help = { name: '--help', about: 'show what there is', value: 'none' as const, choices: [] }
  return [
    ...command.options.filter(({ hidden, long }) => !hidden && long).map(readOption),
    ...(command.parent ? [] : [help]),
  ]
}

function readOption({ long, flags, description, required, argChoices }: Option): CompletionPoint['options'][number] {
  const value = !required ? 'none' : /<file|<path/.test(flags) ? 'file' : 'text'
  return { name: long!, about: description, value, choices: argChoices ?? [] }
}
