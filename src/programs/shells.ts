/** The shells for which lines are printed. `posix` is sh, bash, zsh and similar ones. */
export const shellNames = ['posix', 'fish', 'powershell'] as const
export type ShellName = (typeof shellNames)[number]

/** A word of a command: itself, or a path below the home folder. */
export type Word = string | { home: string }

/** The characters that end a single-quoted string in PowerShell, typographic quotes included. Each is doubled to escape it. */
const powershellQuotes = /['\u2018\u2019\u201a\u201b]/g

const quotes: Record<ShellName, (text: string) => string> = {
  posix: (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`,
  fish: (text) => `'${text.replace(/[\\']/g, String.raw`\$&`)}'`,
  powershell: (text) => `'${text.replace(powershellQuotes, '$&$&')}'`,
}

const assignments: Record<ShellName, (name: string, value: string) => string> = {
  posix: (name, value) => `export ${name}=${value}`,
  fish: (name, value) => `set -gx ${name} ${value}`,
  powershell: (name, value) => `$env:${name} = ${value}`,
}

/** Makes a line that sets a variable for programs started from this shell. */
export function setLine(shell: ShellName, name: string, value: string): string {
  return assignments[shell](name, quotes[shell](value))
}

/** Makes a line that starts a program. */
export function commandLine(shell: ShellName, words: readonly Word[]): string {
  return words.map((word) => writeWord(shell, word)).join(' ')
}

/** Words that need no quotes in any of the three shells, and are easier to read without. */
const plainWord = /^(?:--?[A-Za-z][\w-]*|[A-Za-z0-9_/][\w./-]*)$/

function writeWord(shell: ShellName, word: Word): string {
  if (typeof word === 'string') return plainWord.test(word) ? word : quotes[shell](word)
  return shell === 'powershell' ? `"$HOME/${word.home}"` : `~/${word.home}`
}

/** The shell that a person most likely uses. */
export function likelyShell(platform: NodeJS.Platform, shellVariable: string | undefined): ShellName {
  if (platform === 'win32' && !shellVariable) return 'powershell'
  if (/(?:^|\/)fish$/.test(shellVariable ?? '')) return 'fish'
  return /(?:^|\/)pwsh$/.test(shellVariable ?? '') ? 'powershell' : 'posix'
}
