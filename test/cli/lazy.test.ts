import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { Command } from 'commander'
import { addOperationCommands } from '../../src/cli/operations.ts'
import { tableCommands } from '../../src/cli/table-commands.ts'

test('X4 the names and summaries of commands that are not yet loaded match the table', () => {
  const program = new Command('triwire')
  addOperationCommands(program)
  assert.deepEqual(
    program.commands.map((command) => [command.name(), command.description()]),
    Object.entries(tableCommands),
  )
})

test('X4 --help, setup, reload and similar commands load none of the slow libraries', () => {
  const { seen, packages } = reach('src/cli/cli.ts', 'src/cli/commands.ts')
  assert.ok(seen.length > 20)
  for (const name of ['zod', 'yaml', 'pg']) assert.ok(!packages.has(name), name)
})

test('issue 47 triwire token loads no configuration, no store, no command and no package', () => {
  const { seen, packages } = reach('src/cli/token.ts')
  assert.ok(seen.length > 4)
  assert.deepEqual(
    seen.filter((file) => !/^src\/cli\/(token\.ts|login\/)/.test(file)),
    [],
  )
  assert.deepEqual(
    [...packages].filter((name) => !name.startsWith('node:')),
    [],
  )
  assert.ok(!seen.includes('src/cli/login/exchange.ts'), 'a refresh loads its requests when it comes to it')
})

test('issue 14 the program starts without its other commands, and its server is loaded while the ledger starts', () => {
  assert.ok(!reach('src/cli/cli.ts').seen.includes('src/cli/commands.ts'))
  assert.ok(!reach('src/process/main.ts').seen.includes('src/process/server.ts'))
})

test('issue 14 the server and the simulator start without Node’s HTTP, fetch and TLS', () => {
  const { seen, packages } = reach('src/process/main.ts', 'src/process/server.ts', 'src/simulator/simulator.ts')
  assert.ok(seen.includes('src/upstream/http-fetch.ts') && packages.has('node:net'))
  for (const name of ['node:http', 'node:https', 'node:tls']) assert.ok(!packages.has(name), name)
})

test('X4 a server loads the table of operations when it is first asked for', () => {
  const { seen } = reach('src/process/main.ts', 'src/process/server.ts')
  const loaded = ['src/operations/table.ts', 'src/operations/fields.ts', 'src/operations/live-shapes.ts']
  assert.ok(seen.includes('src/process/admin-api.ts'))
  assert.deepEqual(
    loaded.filter((file) => seen.includes(file)),
    [],
  )
})

/** What files import when they are loaded, and what that imports in turn. */
function reach(...entries: string[]): { seen: string[]; packages: Set<string> } {
  const seen = new Set<string>()
  const packages = new Set<string>()
  entries.forEach(visit)
  return { seen: [...seen], packages }

  function visit(file: string): void {
    if (seen.has(file)) return
    seen.add(file)
    const text = readFileSync(join(root, file), 'utf8')
    for (const [, specifier] of text.matchAll(/^(?:import|export) (?!type )(?:[^'"]*? from )?'([^']+)'/gm)) {
      if (specifier!.startsWith('.')) visit(join(dirname(file), specifier!))
      else packages.add(specifier!)
    }
  }
}

const root = new URL('../..', import.meta.url).pathname
