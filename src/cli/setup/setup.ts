import { type Command, InvalidArgumentError, Option } from 'commander'
import { type ClientWire, clientWireNames, type ModelWire } from '../../catalog/wire-names.ts'
import { clientUrlMistake, readClientUrl } from '../../config/client-url.ts'
import { programs } from '../../programs/known/index.ts'
import type { Program, Settings } from '../../programs/program.ts'
import { likelyShell, type ShellName, shellNames } from '../../programs/shells.ts'
import { usage } from '../options.ts'
import { isJson, note, print } from '../print.ts'
import { type AccessOptions, findAccess } from './access.ts'
import type { SetupSignIn } from './sign-in.ts'

type SetupOptions = AccessOptions & {
  wire?: ClientWire
  shell?: ShellName
  login?: SetupSignIn['way'] | true
  write?: boolean
  dryRun?: boolean
  yes?: boolean
}

/** Shorter names that people may type for programs. */
const aliases = new Map([
  ['openai', 'openai-node'],
  ['anthropic', 'anthropic-node'],
  ['claude', 'claude-code'],
  ['vercel-ai-sdk', 'ai-sdk'],
  ['vercel', 'ai-sdk'],
  ['continue', 'cn'],
  ['kimi', 'kimi-code'],
  ['qwen', 'qwen-code'],
  ['code', 'vscode'],
])

/** Adds `setup`, which prints the settings with which an agent, an editor or an SDK uses the gateway. */
export function addSetupCommand(root: Command): void {
  root
    .command('setup')
    .argument('<client>', 'the client: an agent, editor or SDK')
    .description(`print the settings for a client: ${Object.keys(programs).join(', ')}`)
    .option(
      '--url <origin>',
      'where clients reach the gateway; its models are read from there, so no configuration file is needed',
      readUrl,
    )
    .option('--key <key>', 'an API key, made by triwire key create', readKey)
    .addOption(
      new Option(
        '--login [way]',
        'sign in instead of using a key: the client signs in by itself (itself), runs triwire token (command), or gets a key that triwire makes for you (key); default: the first way that works',
      ).choices(['itself', 'command', 'key']),
    )
    .option(
      '--model <id>',
      'the model; default: a model of the family that the client is made for, or else the first on a wire that it speaks',
    )
    .option(
      '--small-model <id>',
      'the model for titles and other small tasks, if the client has such tasks (default: a model of the family that the client is made for, or else the cheapest)',
    )
    .option(
      '--context-window <tokens>',
      'the context window of the model, such as 400000 or 400k (default: the known value)',
      readTokens,
    )
    .option(
      '--max-output <tokens>',
      'the longest answer of the model, in tokens (default: the known value)',
      readTokens,
    )
    .addOption(
      new Option(
        '--wire <wire>',
        'the wire that the client uses; default: the wire of the model, if the client speaks it',
      ).choices(clientWireNames),
    )
    .addOption(
      new Option('--shell <shell>', 'the shell for which lines are printed (default: yours)').choices(shellNames),
    )
    .option(
      '--write',
      "write the settings into the client's own file; the rest of the file stays, and a backup is kept",
    )
    .option('--dry-run', 'show what --write would change, and write nothing')
    .option('--yes', 'change files without asking first')
    .action(setUp)
}

async function setUp(asked: string, options: SetupOptions, command: Command): Promise<void> {
  const name = aliases.get(asked) ?? asked
  const program = new Map(Object.entries(programs)).get(name)
  if (!program) throw usage(`there is no client '${asked}': name one of ${Object.keys(programs).join(', ')}`)
  const { contextWindow = Infinity, maxOutput = 0 } = options
  if (contextWindow < maxOutput) throw usage('--max-output is a part of --context-window, and cannot be more')
  if (options.login && options.key !== undefined) throw usage('--login is for people without a key: leave out --key')
  const signedIn = options.login ? await signInFor({ name, program }, options, command) : undefined
  const { url, bearer, way, tokenCommand } = signedIn ?? {}
  const wanted = { ...options, ...(url && { url }), ...(bearer && { bearer }) }
  const found = await findAccess(program, wanted, command)
  const { access, figures, isOperator, notes } = found
  const wire = chooseWire(name, program, found.modelWire, options.wire)
  const isWriting = options.write === true || options.dryRun === true
  const told = isWriting ? await program.asks?.hear() : undefined
  if (program.asks && told === undefined) notes.push(isWriting ? program.asks.otherwise : program.asks.ifPrinted)
  const { colleagueLine, describe, describeWindow, settingsOf, toData } = await import('../../programs/describe.ts')
  const settingsWith = (key: string) =>
    settingsOf(program, { ...access, key, told, tokenCommand, isSignIn: way === 'itself' }, wire)
  if (isWriting) await propose(name, settingsWith(access.key), options, command)
  const key = signedIn?.makeKey && !options.dryRun ? await signedIn.makeKey() : access.key
  const settings = settingsWith(key)
  if (settings.note !== undefined) notes.push(settings.note)
  if (isWriting && !options.dryRun) await write(settings, command)
  const shell = options.shell ?? likelyShell(process.platform, process.env['SHELL'])
  const text = describe(settings, shell, isWriting)
  const window = describeWindow(program, name, found, true)
  for (const told of [...notes, ...(window ? [window] : [])]) note(command, told)
  const colleague = isOperator ? colleagueLine(name, wire, found, options.login !== undefined) : undefined
  const { origin, model, small } = access
  const data = {
    ...{ client: name, wire, base_url: origin, key: way === 'itself' || way === 'command' ? null : key },
    ...{ ...(way && { sign_in: way }), model, small_model: small.model },
    context_window: figures.contextWindow ?? null,
    max_output_tokens: figures.outputTokensMax ?? null,
    window_from: figures.windowFrom ?? null,
    ...toData(settings),
    ...(colleague && { colleague }),
    text,
  }
  print(command, data, () => text)
  if (colleague && !isJson(command)) console.error(`\nfor a colleague, who needs no file:\n${colleague}`)
}

async function signInFor(
  client: { name: string; program: Program },
  { url, login = true }: SetupOptions,
  command: Command,
): Promise<SetupSignIn> {
  const { findSignIn } = await import('./sign-in.ts')
  const { glanceAtConfig } = await import('../../config/load.ts')
  return findSignIn(client, login, url ?? glanceAtConfig(command.optsWithGlobals()).apiUrl, command)
}

/**
 * Shows the changes of files, and asks. If the gateway makes a key, it makes it after that, because it would keep an
 * unused one. Here a placeholder stands for the key.
 */
async function propose(name: string, { files }: Settings, options: SetupOptions, command: Command): Promise<void> {
  if (!files) throw usage(`${name} has no configuration file: run without --write`)
  const { confirmPlans, describePlan, planSettings } = await import('./write-settings.ts')
  const plans = planSettings(files)
  for (const plan of plans) {
    if (isJson(command)) note(command, describePlan(plan))
    else console.error(describePlan(plan))
  }
  if (options.dryRun) note(command, 'Nothing was written: this was a dry run.')
  else if (!options.yes) await confirmPlans(plans, command)
}

async function write({ files = [] }: Settings, command: Command): Promise<void> {
  const { planSettings, writePlans } = await import('./write-settings.ts')
  for (const done of writePlans(planSettings(files))) note(command, done)
}

function chooseWire(name: string, program: Program, modelWire: ModelWire | undefined, asked: ClientWire | undefined) {
  if (asked && !program.wires.includes(asked))
    throw usage(`${name} speaks ${program.wires.join(', ')} and not ${asked}`)
  return asked ?? program.wires.find((wire) => wire === modelWire) ?? program.wires[0]!
}

function readUrl(text: string): string {
  const mistake = clientUrlMistake(text)
  if (mistake) throw new InvalidArgumentError(`It ${mistake}.`)
  return readClientUrl(text)
}

/** Checks the characters of a key, because the key is written into files, programs and headers. */
function readKey(text: string): string {
  if (/^[!-~]+$/.test(text) && !/['"`\\]/.test(text)) return text
  // The error is made here, because the option parser's error would quote the key.
  throw usage('the value of --key is not a key: a key is one word without quotes')
}

const tokenUnits: Readonly<Record<string, number>> = { '': 1, k: 1_000, m: 1_000_000 }

function readTokens(text: string): number {
  const [, digits, unit = ''] = /^([1-9]\d{0,8})([km]?)$/i.exec(text) ?? []
  if (digits === undefined) throw new InvalidArgumentError('It must be a number of tokens, such as 400000 or 400k.')
  return Number(digits) * tokenUnits[unit.toLowerCase()]!
}
