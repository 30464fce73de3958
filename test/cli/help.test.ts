import assert from 'node:assert/strict'
import test from 'node:test'
import { Command } from 'commander'
import { addAccountCommands } from '../../src/cli/account.ts'
import { addConfigCommands } from '../../src/cli/config.ts'
import { addDoctorCommand } from '../../src/cli/doctor/doctor.ts'
import { addExplainCommand } from '../../src/cli/explain.ts'
import { addKeyCommands } from '../../src/cli/key.ts'
import { addLedgerCommands } from '../../src/cli/ledger.ts'
import { addSetupCommand } from '../../src/cli/setup/setup.ts'
import { addTranslateCommand } from '../../src/cli/translate.ts'
import { addUpstreamsCommand } from '../../src/cli/upstreams.ts'

const groups = [
  addAccountCommands,
  addConfigCommands,
  addDoctorCommand,
  addExplainCommand,
  addKeyCommands,
  addLedgerCommands,
  addSetupCommand,
  addTranslateCommand,
  addUpstreamsCommand,
]

test('X4 every command has a help that can be printed and says what the command does', () => {
  const program = new Command('triwire')
  for (const add of groups) add(program)
  const commands = [...program.commands]
  let count = 0
  for (let command = commands.pop(); command; command = commands.pop()) {
    commands.push(...command.commands)
    const help = command.helpInformation()
    assert.match(help, /^Usage: /)
    assert.notEqual(command.description(), '', command.name())
    count++
  }
  assert.ok(count > 20, String(count))
})
