import { type Command, CommanderError, Option } from 'commander'
import { type WireName, wireNames } from '../../catalog/model.ts'
import { originOf } from '../origin.ts'
import { note, print } from '../print.ts'
import type { Access, Program } from './program.ts'
import { programs } from './programs/index.ts'
import type { Settings } from './settings.ts'
import { writeSettings } from './write-settings.ts'

type Options = {
  url?: string
  key: string
  model?: string
  smallModel?: string
  wire?: WireName
  write?: boolean
  yes?: boolean
}

/** Shorter names that people try first. */
const aliases = new Map([
  ['openai', 'openai-node'],
  ['anthropic', 'anthropic-node'],
  ['claude', 'claude-code'],
  ['vercel-ai-sdk', 'ai-sdk'],
  ['vercel', 'ai-sdk'],
])

/** `setup`: what to set in an agent or SDK so that it uses the gateway. People call either a client, so the texts do. */
export function addSetupCommand(root: Command): void {
  root
    .command('setup <client>')
    .description(`print what to set in a client: ${Object.keys(programs).join(', ')}`)
    .option('--url <origin>', 'where clients reach the gateway (default: the address it listens on)')
    .option('--key <key>', 'API key, from triwire key create', 'sk-tri-YOUR-KEY')
    .option('--model <id>', 'default: the first of the catalog')
    .option('--small-model <id>', 'for titles and other small work, where a client has such work (default: the model)')
    .addOption(new Option('--wire <wire>', "default: the model's own where the client speaks it").choices(wireNames))
    .option('--write', "put the settings into the client's configuration file, keeping a backup")
    .option('--yes', 'do not ask before a file is changed')
    .action(async (asked: string, options: Options, command: Command) => {
      const name = aliases.get(asked) ?? asked
      const program = new Map(Object.entries(programs)).get(name)
      if (!program) throw usage(`there is no client '${asked}': name one of ${Object.keys(programs).join(', ')}`)
      const { access, modelWire } = await readAccess(options, command)
      const wire = chooseWire(name, program, modelWire, options.wire)
      const settings = program.settings(access, wire)
      if (options.write) {
        if (!settings.file) throw usage(`${name} has no configuration file: run without --write`)
        const written = await writeSettings(settings.file, options.yes === true)
        note(command, written)
      }
      const text = describe(settings, options.write === true)
      const { origin, key, model } = access
      print(command, { client: name, wire, base_url: origin, key, model, ...settings, text }, () => text)
    })
}

function chooseWire(name: string, program: Program, modelWire: WireName, asked: WireName | undefined): WireName {
  if (asked && !program.wires.includes(asked))
    throw usage(`${name} speaks ${program.wires.join(', ')} and not ${asked}`)
  return asked ?? program.wires.find((wire) => wire === modelWire) ?? program.wires[0]!
}

async function readAccess(options: Options, command: Command): Promise<{ access: Access; modelWire: WireName }> {
  const { loadConfig } = await import('../../config/load.ts')
  const { listen, tls, catalog } = loadConfig({ ...command.optsWithGlobals(), isWithoutFiles: true })
  const id = options.model ?? catalog.models.keys().next().value
  if (id === undefined) throw new Error('The catalog has no model: name one in the configuration')
  const smallModel = options.smallModel ?? id
  for (const named of [id, smallModel]) {
    if (!catalog.models.has(named)) throw new Error(`There is no model "${named}" in the catalog: see triwire models`)
  }
  const model = catalog.models.get(id)!
  const origin = options.url ? options.url.replace(/\/+(v1\/*)?$/, '') : originOf(listen, tls ? 'https' : 'http')
  const access = { origin, key: options.key, model: id, smallModel, outputTokensMax: model.outputTokensMax }
  return { access, modelWire: model.wire }
}

/** What a person copies: the file unless it was written, the variables, the command. */
function describe({ file, env, run, code }: Settings, isWritten: boolean): string {
  const variables = Object.entries(env ?? {}).map(([name, value]) => `export ${name}='${value}'`)
  return [
    ...(file && !isWritten ? [`# ${file.path}`, file.text] : []),
    ...(file && variables.length > 0 ? ['# in the shell'] : []),
    ...variables,
    ...(run ? [run] : []),
    ...(code ? [code] : []),
  ].join('\n')
}

function usage(message: string): CommanderError {
  return new CommanderError(2, 'triwire.setup', `error: ${message}`)
}
