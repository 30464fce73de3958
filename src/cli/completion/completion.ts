import { Argument, type Command } from 'commander'
import { print } from '../print.ts'
import { type Shell, shells } from './scripts.ts'
import { placesOf } from './tree.ts'

/** Adds `completion`, which prints a script with which a shell completes commands and options. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script with which a shell completes commands and options')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(shells)))
    .action((shell: Shell, _options, command: Command) => {
      const script = shells[shell](placesOf(program))
      print(command, { shell, script }, () => script)
    })
}
