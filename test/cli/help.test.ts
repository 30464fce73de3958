import assert from 'node:assert/strict'
import test from 'node:test'
import { Command } from 'commander'
import { addCheckCommand } from '../../src/cli/check.ts'
import { addDoctorCommand } from '../../src/cli/doctor/doctor.ts'
import { addLedgerCommands } from '../../src/cli/ledger.ts'
import { addOperationCommands } from '../../src/cli/operations.ts'
import { addSetupCommand } from '../../src/cli/setup/setup.ts'
import { addTranslateCommand } from '../../src/cli/translate.ts'

const groups = [
  addOperationCommands,
  addCheckCommand,
  addDoctorCommand,
  addLedgerCommands,
  addSetupCommand,
  addTranslateCommand,
]

test('X4 every command has a printable help that explains the command and each of its words', () => {
  const program = new Command('triwire')
  for (const add of groups) add(program)
  const commands = [...program.commands]
  let count = 0
  for (let command = commands.pop(); command; command = commands.pop()) {
    commands.push(...command.commands)
    const help = command.helpInformation()
    assert.match(help, /^Usage: /)
    assert.notEqual(command.description(), '', command.name())
    for (const told of [...command.options, ...command.registeredArguments])
      assert.notEqual(told.description ?? '', '', `${command.name()} ${'flags' in told ? told.flags : told.name()}`)
    count++
  }
  assert.ok(count > 20, String(count))
})
