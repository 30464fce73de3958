import { Argument, type Command, type Option } from 'commander'
import { print } from './print.ts'

/** Adds `completion`, which prints a script with which a shell completes commands and options. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that makes a shell complete commands and options')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(shells)))
    .action((shell: Shell, _options, command: Command) => {
      const script = shells[shell](placesOf(program))
      print(command, { shell, script }, () => script)
    })
}

/*
 * The script of each shell. It contains all words and runs no program, so it is quick. It completes commands, options,
 * fixed values of options, and file names.
 */

const shells = { bash, zsh, fish } as const

type Shell = keyof typeof shells

function bash(places: readonly CompletionPoint[]): string {
  return `# triwire completion for bash: source it, or put it into ~/.local/share/bash-completion/completions/triwire
_triwire() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} path= at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "$path \${COMP_WORDS[at]}" in
${knownPaths(places)
  .map((path) => `      " ${path}"|"${path}") path="${path}" ;;`)
  .join('\n')}
    esac
  done
  case "$path $before" in
${valueCases(places, (words) => `COMPREPLY=($(compgen -W "${words}" -- "$word")); return`, 'COMPREPLY=($(compgen -f -- "$word")); return')}
  esac
  case "$path" in
${places.map((place) => `    "${place.path}") COMPREPLY=($(compgen -W "${wordsOf(place)}" -- "$word")) ;;`).join('\n')}
  esac
}
complete -o filenames -F _triwire triwire`
}

function zsh(places: readonly CompletionPoint[]): string {
  return `#compdef triwire
# triwire completion for zsh: put it into a folder of $fpath as _triwire
_triwire() {
  local before=\${words[CURRENT-1]} at place=
  for ((at = 2; at < CURRENT; at++)); do
    case "$place \${words[at]}" in
${knownPaths(places)
  .map((path) => `      " ${path}"|"${path}") place="${path}" ;;`)
  .join('\n')}
    esac
  done
  case "$place $before" in
${valueCases(places, (words) => `compadd -- ${words}; return`, '_files; return')}
  esac
  case "$place" in
${places.map((place) => `    "${place.path}") compadd -- ${wordsOf(place)} ;;`).join('\n')}
  esac
}
# Sourced it registers itself; from $fpath it is run as the completion itself.
if [ "$funcstack[1]" = "_triwire" ]; then _triwire "$@"; else compdef _triwire triwire; fi`
}

function fish(places: readonly CompletionPoint[]): string {
  const lines = places.flatMap(({ path, commands, options }) => {
    const when = `-n '__triwire_at "${path}"'`
    return [
      ...commands.map(({ name, about }) => `complete -c triwire -f ${when} -a ${name} -d ${quote(about)}`),
      ...options.map(({ name, about, value, choices }) => {
        const taken = { none: '', file: ' -r -F', text: ' -x' }[value]
        const offered = choices.length > 0 ? ` -a ${quote(choices.join(' '))}` : ''
        return `complete -c triwire ${when} -l ${name.slice(2)}${taken}${offered} -d ${quote(about)}`
      }),
    ]
  })
  return `# triwire completion for fish: put it into ~/.config/fish/completions/triwire.fish
function __triwire_at
  set -l place
  for word in (commandline -opc)[2..-1]
    switch (string trim "$place $word")
      case ${knownPaths(places).map(quote).join(' ')}
        set place (string trim "$place $word")
    end
  end
  test "$place" = "$argv[1]"
end
complete -c triwire -f
${lines.join('\n')}`
}

function knownPaths(places: readonly CompletionPoint[]): string[] {
  return places.map(({ path }) => path).filter(Boolean)
}

function wordsOf({ commands, options }: CompletionPoint): string {
  return [...commands, ...options].map(({ name }) => name).join(' ')
}

/** Returns the part of a script that completes an option's value: fixed words, a file name, or nothing. */
function valueCases(places: readonly CompletionPoint[], offer: (words: string) => string, files: string): string {
  const cases = places.flatMap(({ path, options }) =>
    options
      .filter(({ value }) => value !== 'none')
      .map(({ name, value, choices }) => {
        const answer = choices.length > 0 ? offer(choices.join(' ')) : value === 'file' ? files : 'return'
        return `    "${path} ${name}") ${answer} ;;`
      }),
  )
  return cases.join('\n')
}

function quote(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`
}

/** The words that can follow at one point of the command line. */
type CompletionPoint = {
  /** The commands before this point, separated by blanks. Empty for the program itself. */
  path: string
  /** The commands that can follow at this point, and the fixed values that an argument can have. */
  commands: readonly { name: string; about: string }[]
  /** Options that are valid here, including the global ones. */
  options: readonly { name: string; about: string; value: 'none' | 'file' | 'text'; choices: readonly string[] }[]
}

/** Returns the completion points of a program, one for each command. A command comes before its subcommands. */
function placesOf(program: Command): CompletionPoint[] {
  const global = optionsOf(program)
  return visit(program, '')

  function visit(command: Command, path: string): CompletionPoint[] {
    const { commands } = command
    const here: CompletionPoint = {
      path,
      commands: [
        ...commands.map((one) => ({ name: one.name(), about: one.description() })),
        ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
          argChoices.map((name) => ({ name, about: description })),
        ),
      ],
      options: path === '' ? global : [...optionsOf(command), ...global],
    }
    return [here, ...commands.flatMap((one) => visit(one, `${path} ${one.name()}`.trim()))]
  }
}

function optionsOf(command: Command): CompletionPoint['options'] {
  const help = { name: '--help', about: 'show what there is', value: 'none' as const, choices: [] }
  return [
    ...command.options.filter(({ hidden, long }) => !hidden && long).map(readOption),
    ...(command.parent ? [] : [help]),
  ]
}

function readOption({ long, flags, description, required, argChoices }: Option): CompletionPoint['options'][number] {
  const value = !required ? 'none' : /<file|<path/.test(flags) ? 'file' : 'text'
  return { name: long!, about: description, value, choices: argChoices ?? [] }
}
