/*
 * The program. Each command loads what it needs when it runs, so that `--help` and `key create` are quick.
 * Data goes to stdout, everything else to stderr (ruling X4). Exit codes: 0 done, 1 failed, 2 asked wrongly.
 */
import { readFileSync } from 'node:fs'
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { releaseSignals } from '../../bin/signals.mjs'
import { addAccountCommands } from './account.ts'
import { addCatalogCommands } from './catalog/index.ts'
import { addConfigCommands } from './config.ts'
import { addDoctorCommand } from './doctor/doctor.ts'
import { addExplainCommand } from './explain.ts'
import { addKeyCommands } from './key.ts'
import { addLedgerCommands } from './ledger.ts'
import { addSetupCommand } from './setup/setup.ts'
import { addUpstreamsCommand } from './upstreams.ts'

// No import: what is compiled for the package lies one folder below its manifest as the sources do, and copies nothing.
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

const program = new Command('triwire')
  .description(
    'An HTTP gateway in front of many language models: three wires, any model on any of them, prepaid credit.',
  )
  .version(version)
  .option('--config <file>', 'configuration file (TRIWIRE_CONFIG; default: triwire.yaml where there is one)')
  .option('--store <file>', 'SQLite file of accounts and ledger (TRIWIRE_STORE)')
  .option('--json', 'print data as JSON')
  .showHelpAfterError('Run with --help to see what there is.')
  .exitOverride()
  // Only a server has an answer to them, and takes them over when it has started.
  .hook('preAction', (_, action) => {
    if (action.name() !== 'serve') releaseSignals()
  })

const serve = program
  .command('serve')
  .description('run the gateway; what happens without a command too')
  .option('--listen <address>', 'host:port of the public listener')
  .option('--admin-listen <address>', 'host:port of health, readiness and what operators ask')
  .action(async (_options, command: Command) => {
    const { config, store, listen, adminListen } = command.optsWithGlobals()
    const main = await import('../process/main.ts')
    // A server lives on when nobody reads what its start printed.
    process.stdout.off('error', endWithReader)
    await main.serve({ config, store, listen, adminListen })
  })
addAccountCommands(program)
addKeyCommands(program)
addLedgerCommands(program)
addConfigCommands(program)
addCatalogCommands(program)
addSetupCommand(program)
addDoctorCommand(program)
addExplainCommand(program)
addUpstreamsCommand(program)
program
  .command('simulator')
  .description('run the simulated upstream on all three wires')
  .option('--port <number>', 'any free one when 0', readPort, 0)
  .option('--host <address>', 'address to listen on', '127.0.0.1')
  .option('--scripts <file>', 'YAML file of scripted answers')
  .action(async (options: { port: number; host: string; scripts?: string }) => {
    const { startSimulator } = await import('../simulator/simulator.ts')
    const { url } = await startSimulator(options)
    console.log(url)
  })

process.stdout.on('error', endWithReader)

try {
  await program.parseAsync(withCommand(process.argv.slice(2)), { from: 'user' })
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else {
    console.error(`triwire: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 1
  }
}

/** `npx triwire` runs the gateway. Asked like this, and not as a default of commander's, a typing error is still told as one. */
function withCommand(args: string[]): string[] {
  const probe = new Command()
  const options = [...program.options, ...serve.options].filter(({ long }) => long !== '--version')
  for (const option of options) probe.addOption(option)
  const { operands, unknown } = probe.parseOptions(args)
  return operands.length + unknown.length > 0 ? args : ['serve', ...args]
}

/** `ledger export | head` is no failure. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit()
}

function readPort(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('It is a number from 0 to 65535.')
  return port
}
