import { type Argument, Command, type Option } from 'commander'
import { addCommands } from '../src/cli/commands.ts'

const program = new Command('triwire')
await addCommands(program, ['help'])

const opening = '<!-- commands -->'
const closing = '<!-- /commands -->'

/**
 * Writes the reference of commands at the end of the sections whose headings name them: usage, description, arguments
 * and options. It is made from the program's commands, and so from the table of operations. The text before it is
 * written by hand and stays.
 * @param page the current text of docs/cli.md
 * @throws Error if a command has no section
 */
export function withCommands(page: string): string {
  const described = new Set<string>()
  const sections = page.split(/^(?=## )/m).map((section) => {
    const names = /^## (.*)$/m.exec(section)?.[1]?.split(', ') ?? []
    const commands = program.commands.filter((one) => names.includes(one.name()))
    if (commands.length === 0) return section
    for (const one of commands) described.add(one.name())
    const own = section.replace(/<!-- commands -->[\s\S]*<!-- \/commands -->/, '').trimEnd()
    const text = commands.flatMap(leavesOf).map(describe).join('\n')
    return `${own}\n\n${opening}\n${text}${closing}\n\n`
  })
  const lost = program.commands.filter((one) => !described.has(one.name()) && one.name() !== 'completion')
  if (lost.length > 0) throw new Error(`docs/cli.md has no section for: ${lost.map((one) => one.name()).join(', ')}`)
  return `${sections.join('').trimEnd()}\n`
}

/** Returns the command itself, or its subcommands that can be run. */
function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
}

function describe(command: Command): string {
  const help = command.createHelp()
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help')
  const rows = [...command.registeredArguments.map(argumentRow), ...options.map(optionRow)]
  const table = rows.length === 0 ? [] : ['| Argument or option | |', '|---|---|', ...rows, '']
  return [`**\`${help.commandUsage(command)}\`**: ${escapeCell(command.description())}.`, '', ...table].join('\n')
}

function argumentRow(argument: Argument): string {
  const inner = `${argument.name()}${argument.variadic ? '...' : ''}`
  const name = argument.required ? `<${inner}>` : `[${inner}]`
  return row(name, argument.description, argument.argChoices, argument.defaultValueDescription)
}

function optionRow(option: Option): string {
  const { flags, description, argChoices, mandatory, defaultValue, defaultValueDescription } = option
  const isPlain = ['string', 'number'].includes(typeof defaultValue)
  const usual = defaultValueDescription ?? (isPlain ? `${defaultValue}` : undefined)
  return row(flags, mandatory ? `${description} (required)` : description, argChoices, usual)
}

function row(name: string, text: string, choices: readonly string[] | undefined, usual: string | undefined): string {
  const values = choices?.map((value) => `\`${value}\``).join(', ')
  const more = [escapeCell(text), values, usual === undefined ? '' : `default \`${usual}\``].filter(Boolean).join('; ')
  return `| \`${name.replaceAll('|', '\\|')}\` | ${more} |`
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '\\<')
}
