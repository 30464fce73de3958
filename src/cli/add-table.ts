import type { Command } from 'commander'
import { wordsOf } from './asked.ts'
import { tableCommands } from './table-commands.ts'

/** Adds all commands of the table if one of them, or help about all, is typed. Otherwise adds only their names. */
export async function addTableCommands(program: Command, args: readonly string[]): Promise<void> {
  const [first = ''] = wordsOf(args)
  if (first === 'help' || first === 'completion' || Object.hasOwn(tableCommands, first)) {
    const { addOperationCommands } = await import('./operations.ts')
    addOperationCommands(program)
    const { addLedgerCommands } = await import('./ledger.ts')
    addLedgerCommands(program)
    const { addAuditCommands } = await import('./audit.ts')
    addAuditCommands(program)
  } else for (const [name, text] of Object.entries(tableCommands)) program.command(name).description(text)
}
