/*
 * The program `triwire`. Each command loads its modules when it runs, so that `--help` and `key create` are quick. Data
 * goes to stdout, and everything else to stderr (ruling X4). Exit codes: 0 success, 1 failure, 2 wrong usage.
 */
import { setFlagsFromString } from 'node:v8'
import { Command, CommanderError } from 'commander'
import { releaseSignals } from '../../bin/signals.mjs'
import type { ConfigProblem } from '../config/problem.ts'
import { version } from '../host/version.ts'
import { asksToServe, numberFrom, wordsOf } from './options.ts'
import { explainLoss, printError, withoutSecrets } from './print.ts'

/** Whether `--json` was typed. It is read here, because errors of options are printed before options are parsed. */
const isJson = process.argv.includes('--json')

const program = new Command('triwire')
  .description(
    'An HTTP gateway in front of many language models: three wires, any model on any of them, prepaid credit.',
  )
  .version(version, '-v, --version')
  .option('--config <file>', 'the configuration file (TRIWIRE_CONFIG; default: triwire.yaml, if it exists)')
  .option(
    '--store <place>',
    'the store of accounts and ledger: a SQLite file, or postgres://user@host/database (TRIWIRE_STORE)',
  )
  .option('--json', 'print data as JSON')
  .configureHelp({ showGlobalOptions: true })
  .configureOutput({
    // The text quotes what the person typed, and a key may be in it.
    writeErr: (text) => void (isJson || process.stderr.write(withoutSecrets(text))),
  })
  .showHelpAfterError('Run with --help to see what there is.')
  .exitOverride()
  // At the start, signals are held back for the handlers of `serve`. For all other commands they act as usual again.
  .hook('preAction', (_, action) => {
    if (action.name() !== 'serve') releaseSignals()
  })

const serve = program
  .command('serve')
  .description('run the gateway; this is the default command')
  .option('--listen <address>', 'host:port of the public listener')
  .option(
    '--admin-listen <address>',
    'host:port of the admin listener: health, readiness, metrics, admin API and console',
  )
  .option(
    '--workers <count>',
    'the number of processes that share the port; they need a store in PostgreSQL',
    numberFrom(1, 64, ': about one for each core'),
  )
  .option(
    '--link',
    'print a link that signs in one browser to the console as an admin, even if the output is not a terminal',
  )
  .action(async (_options, command: Command) => {
    const { config, store, json, listen, adminListen, workers, link } = command.optsWithGlobals()
    // V8 seldom shrinks its heap of new objects. So the heap must not grow during the start; under traffic it may grow.
    setFlagsFromString('--semi-space-growth-factor=1')
    const main = await import('../process/main.ts')
    setFlagsFromString('--semi-space-growth-factor=2')
    // A server must continue to run if the program that reads its first output ends.
    process.stdout.off('error', endWithReader)
    await main.serve({ config, store, json, listen, adminListen, workers, link })
  })
// A usage table can have a million rows. These flags save about 40 MB, because V8's heap of new objects stays small.
if (wordsOf(process.argv.slice(2))[0] === 'usage')
  for (const flag of ['--semi-space-growth-factor=1', '--optimize-for-size']) setFlagsFromString(flag)
if (!asksToServe(process.argv.slice(2))) {
  const { addCommands } = await import('./commands.ts')
  await addCommands(program, process.argv.slice(2))
}

process.stdout.on('error', endWithReader)

try {
  await program.parseAsync(withCommand(process.argv.slice(2)), { from: 'user' })
} catch (error) {
  process.exitCode = tell(error)
}

/** Prints an error. @returns the exit code */
function tell(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0
    // Commander has already printed its errors.
    const isTold = error.code.startsWith('commander.') && !isJson
    const message =
      error.code === 'commander.help' ? 'name a command: --help lists them' : error.message.replace(/^error: /, '')
    if (!isTold) printError({ code: 'usage', message: isJson ? message : error.message }, isJson)
    return 2
  }
  const problems = (error as { problems?: readonly ConfigProblem[] }).problems
  // An invalid value of an option counts as wrong usage, even if the configuration's check finds it.
  const isUsage = problems?.every(({ path }) => path.startsWith('--')) ?? false
  const text = error instanceof Error ? error.message : `${error}`
  const message = isJson ? text : `triwire: ${text}`
  printError({ code: isUsage ? 'usage' : 'failed', message, ...(problems && { problems }) }, isJson)
  return isUsage ? 2 : 1
}

/** Inserts `serve` if no command is typed. Commander's own default command would also get every misspelt command. */
function withCommand(args: string[]): string[] {
  // Earlier releases spelled the option `-V`.
  if (args[0] === '-V') return ['-v']
  const probe = new Command().exitOverride().configureOutput({ writeErr: () => {} })
  const options = [...program.options, ...serve.options].filter(({ long }) => long !== '--version')
  for (const option of options) probe.addOption(option)
  try {
    const { operands, unknown } = probe.parseOptions(args)
    return operands.length + unknown.length > 0 ? args : ['serve', ...args]
  } catch {
    // The program itself will report the invalid options.
    return args
  }
}

/** Exits without an error if the reader of stdout closes it, as in `ledger export | head`. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit()
  printError({ code: 'failed', message: `${isJson ? '' : 'triwire: '}${explainLoss(error)}` }, isJson)
  process.exit(1)
}
