import type { ClientWire } from '../catalog/wire-names.ts'
import type { SetupSource } from './figures.ts'
import type { Program, Settings } from './program.ts'
import { commandLine, type ShellName, setLine, shellNames, type Word } from './shells.ts'

/** Makes the text that a person copies: files unless they were already shown, variables, and commands. */
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

/** Makes the settings as data for programs. `run` is for a POSIX shell, and `lines` has the lines for each shell. */
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

/** Makes a sentence about the context window: its source, or what the program assumes. Undefined if none is needed. */
export function describeWindow(
  { assumes }: Program,
  name: string,
  { access, figures }: Pick<SetupSource, 'access' | 'figures'>,
): string | undefined {
  const { contextWindow, outputTokensMax, windowFrom } = figures
  if (assumes === undefined) return undefined
  if (contextWindow === undefined)
    return `no context window is known of ${access.model}: say it with --context-window; ${name} assumes ${assumes}`
  if (!windowFrom?.startsWith('the preset ')) return undefined
  const output = outputTokensMax === undefined ? '' : `, ${outputTokensMax} of them output`
  return `${windowFrom} says ${contextWindow} tokens${output}, of ${access.model}: another window is said with --context-window`
}

/**
 * Makes the command that an operator sends to a colleague who has no configuration file. It contains the figures,
 * because the list of models lacks them.
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
