import type { ClientWire } from '../catalog/wire-names.ts'
import type { SetupSource } from './figures.ts'
import type { Access, Program, Settings } from './program.ts'
import { commandLine, keyPlaceholder, keyVariable, type ShellName, setLine, shellNames, type Word } from './shells.ts'

/** Replaces the quoted placeholder of the key by source code that reads the variable (CON-3). */
const keyReads: Record<NonNullable<Settings['code']>['language'], (text: string) => string> = {
  javascript: (text) => text.replaceAll(`'${keyPlaceholder}'`, `process.env.${keyVariable}`),
  python: (text) => `import os\n\n${text.replaceAll(`"${keyPlaceholder}"`, `os.environ["${keyVariable}"]`)}`,
}

/**
 * Makes the settings of a program. If no key is given, source texts read the key from a variable.
 * @property note tells the person to write the key in place of its placeholder; undefined if no placeholder is left
 */
export function settingsOf(program: Program, access: Access, wire: ClientWire): Settings & { note?: string } {
  const settings = program.settings(access, wire)
  const { code, files = [], steps = [] } = settings
  if (code?.text.includes(keyPlaceholder))
    return { ...settings, code: { ...code, text: keyReads[code.language](code.text) } }
  if (![...files.map(({ text }) => text), ...steps].some((text) => text.includes(keyPlaceholder))) return settings
  return {
    ...settings,
    note: `write the key itself in place of ${keyPlaceholder}: environment variables are not read there`,
  }
}

/** Makes the text that a person copies: variables, commands, and the files unless they were already shown. */
export function describe({ files = [], steps = [], code, ...rest }: Settings, shell: ShellName, isShown: boolean) {
  const lines = linesOf(rest, shell)
  return [
    ...(isShown ? [] : files.flatMap(({ path, text }) => [`# ${path}`, text])),
    ...(files.length > 0 && lines.length > 0 ? [`# in the shell${shell === 'posix' ? '' : ` (${shell})`}`] : []),
    ...lines,
    ...steps,
    ...(code ? [code.text] : []),
  ].join('\n')
}

export function linesOf({ env = {}, commands = [] }: Settings, shell: ShellName): string[] {
  const variables = Object.entries(env).flatMap(([name, value]) =>
    value === undefined ? [] : [setLine(shell, name, value)],
  )
  return [...variables, ...commands.map((words) => commandLine(shell, words))]
}

/**
 * Returns the settings as data for programs. `run` is one line for a POSIX shell. `lines` has the lines for each shell.
 */
export function toData({ files = [], env, commands, steps, code }: Settings) {
  const written = files.map(({ path, text }) => ({ path, text }))
  return {
    ...(written.length > 0 && { file: written[0], files: written }),
    ...(env && { env }),
    ...(commands && { run: commands.map((words) => commandLine('posix', words)).join(' && ') }),
    ...((env || commands) && {
      lines: Object.fromEntries(shellNames.map((shell) => [shell, linesOf({ env, commands }, shell)])),
    }),
    ...(steps && { steps }),
    ...(code && { code: code.text }),
  }
}

/**
 * Returns a note on the context window, or undefined. There is a note if the window is unknown, so that the program
 * assumes one. There is also a note if the window comes from a preset.
 * @param isCommand whether the reader can use options of the command line
 */
export function describeWindow(
  { assumes }: Program,
  name: string,
  { access, figures }: Pick<SetupSource, 'access' | 'figures'>,
  isCommand: boolean,
): string | undefined {
  const { contextWindow, outputTokensMax, windowFrom } = figures
  if (assumes === undefined) return undefined
  if (contextWindow === undefined) {
    const cure = isCommand ? 'set it with --context-window' : 'an operator can set `context_window` of the model'
    return `no context window is known for ${access.model}: ${cure}; ${name} assumes ${assumes}`
  }
  if (!windowFrom?.startsWith('the preset ')) return undefined
  const output = outputTokensMax === undefined ? '' : `, ${outputTokensMax} of them output`
  return `${windowFrom} says ${contextWindow} tokens${output}, of ${access.model}${isCommand ? ': set another window with --context-window' : ''}`
}

/**
 * Makes the command that an operator sends to a colleague who has no configuration file. The command contains the
 * model's figures, because the gateway's list of models lacks them.
 */
export function colleagueLine(
  name: string,
  wire: ClientWire,
  { access, figures, publicUrl }: SetupSource,
  isLogin = false,
) {
  const { model, small } = access
  const { contextWindow, outputTokensMax } = figures
  const words: Word[] = [
    ...['npx', 'triwire', 'setup', name, '--url', publicUrl ?? 'https://YOUR-GATEWAY'],
    ...(isLogin ? ['--login'] : ['--key', 'sk-tri-THEIR-KEY']),
    ...['--model', model, ...(small.model === model ? [] : ['--small-model', small.model]), '--wire', wire],
    ...(contextWindow === undefined ? [] : ['--context-window', String(contextWindow)]),
    ...(outputTokensMax === undefined ? [] : ['--max-output', String(outputTokensMax)]),
  ]
  return commandLine('posix', words)
}
