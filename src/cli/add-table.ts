import type { Command } from 'commander'
import { tableCommands } from './table-commands.ts'

/** What is typed before a command may take a value. */
const takesValue = /^--(?:config|store)$/

/** All of the commands where one of them is asked for, or something is asked about all; else their names. */
export async function addTableCommands(program: Command, args: readonly string[]): Promise<void> {
  const words = args.filter((word, at) => !word.startsWith('-') && !takesValue.test(args[at - 1] ?? ''))
  const [first = ''] = words
  if (first === 'help' || first === 'completion' || Object.hasOwn(tableCommands, first)) {
    const { addOperationCommands } = await import('./operations.ts')
    addOperationCommands(program)
    const { addLedgerCommands } = await import('./ledger.ts')
    addLedgerCommands(program)
    const { addAuditCommands } = await import('./audit.ts')
    addAuditCommands(program)
  } else for (const [name, text] of Object.entries(tableCommands)) program.command(name).description(text)
}
