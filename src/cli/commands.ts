import type { Command } from 'commander'
import { addCatalogCommands } from './catalog/index.ts'
import { addCheckCommand } from './check.ts'
import { addCompletionCommand } from './completion.ts'
import { addDoctorCommand } from './doctor/doctor.ts'
import { addImportCommands } from './import/index.ts'
import { addLoginCommands } from './login/commands.ts'
import { wordsOf } from './options.ts'
import { addPriceCommand } from './price.ts'
import { addReconcileCommand } from './reconcile.ts'
import { addServerCommands } from './servers.ts'
import { addSetupCommand } from './setup/setup.ts'
import { addSignInCommand } from './sign-in.ts'
import { addSimulatorCommand } from './simulator.ts'
import { tableCommands } from './table-commands.ts'
import { addTranslateCommand } from './translate.ts'
import { addVersionCommand } from './version.ts'

/** Adds all commands except `serve`. @param args the words that the person typed after `triwire` */
export async function addCommands(program: Command, args: readonly string[]): Promise<void> {
  await addTableCommands(program, args)
  addCheckCommand(program)
  addPriceCommand(program)
  addReconcileCommand(program)
  addCatalogCommands(program)
  addImportCommands(program)
  addSetupCommand(program)
  addLoginCommands(program)
  addDoctorCommand(program)
  addServerCommands(program)
  addSignInCommand(program)
  addSimulatorCommand(program)
  addTranslateCommand(program)
  addVersionCommand(program)
  addCompletionCommand(program)
}

/**
 * Adds the commands of the table of operations. If another command was typed, only their names and descriptions are
 * added.
 */
async function addTableCommands(program: Command, args: readonly string[]): Promise<void> {
  const [first = ''] = wordsOf(args)
  if (first === 'help' || first === 'completion' || Object.hasOwn(tableCommands, first)) {
    const { addOperationCommands } = await import('./operations.ts')
    addOperationCommands(program)
    const { addLedgerCommands } = await import('./ledger.ts')
    addLedgerCommands(program)
  } else for (const [name, text] of Object.entries(tableCommands)) program.command(name).description(text)
}
