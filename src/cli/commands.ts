import type { Command } from 'commander'
import { addTableCommands } from './add-table.ts'
import { addCatalogCommands } from './catalog/index.ts'
import { addCheckCommand } from './check/check.ts'
import { addCompletionCommand } from './completion/completion.ts'
import { addDoctorCommand } from './doctor/doctor.ts'
import { addReloadCommand } from './reload.ts'
import { addReplicasCommand } from './replicas.ts'
import { addReportingCommands } from './reporting.ts'
import { addSetupCommand } from './setup/setup.ts'
import { addSimulatorCommand } from './simulator.ts'
import { addStoreCommands } from './store-copy.ts'
import { addTranslateCommand } from './translate.ts'

/** Adds all commands except `serve`. @param args as they were typed */
export async function addCommands(program: Command, args: readonly string[]): Promise<void> {
  await addTableCommands(program, args)
  addCheckCommand(program)
  addCatalogCommands(program)
  addSetupCommand(program)
  addDoctorCommand(program)
  addReloadCommand(program)
  addStoreCommands(program)
  addReplicasCommand(program)
  addReportingCommands(program)
  addSimulatorCommand(program)
  addTranslateCommand(program)
  addCompletionCommand(program)
}
