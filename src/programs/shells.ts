/** The shells for which lines are printed. `posix` is sh, bash, zsh and similar shells. */
export const shellNames = ['posix', 'fish', 'powershell'] as const
export type ShellName = (typeof shellNames)[number]

/** A word of a command: a text, or a path below the home folder. */
export type Word = string | { home: string }

/**
 * The characters that end a single-quoted string in PowerShell, which include typographic quotes. A doubled quote does
 * not end it.
 */
const powershellQuotes = /['\u2018\u2019\u201a\u201b]/g

const quotes: Record<ShellName, (text: string) => string> = {
  posix: (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`,
  fish: (text) => `'${text.replace(/[\\']/g, String.raw`\$&`)}'`,
  powershell: (text) => `'${text.replace(powershellQuotes, '$&$&')}'`,
}

/** The environment variable that contains the key, for programs that let the user choose its name. */
export const keyVariable = 'TRIWIRE_API_KEY'

/** The text that stands for the key in settings that are shown without the key. */
export const keyPlaceholder = `$${keyVariable}`

/** How each shell reads the key from its variable. In single quotes, the name would be sent as the key (CON-3). */
const keyReads: Record<ShellName, string> = {
  posix: `"${keyPlaceholder}"`,
  fish: `"${keyPlaceholder}"`,
  powershell: `"$env:${keyVariable}"`,
}

/** Quotes a text. The key's placeholder becomes a variable outside the quotes. PowerShell joins the parts with `+`. */
function quote(shell: ShellName, text: string): string {
  const parts = text.split(keyPlaceholder).map((part) => (part === '' ? '' : quotes[shell](part)))
  if (parts.length === 1) return quotes[shell](text)
  const words = parts.flatMap((part, at) => (at === 0 ? [part] : [keyReads[shell], part])).filter((word) => word !== '')
  return shell === 'powershell' && words.length > 1 ? `(${words.join(' + ')})` : words.join('')
}

const assignments: Record<ShellName, (name: string, value: string) => string> = {
  posix: (name, value) => `export ${name}=${value}`,
  fish: (name, value) => `set -gx ${name} ${value}`,
  powershell: (name, value) => `$env:${name} = ${value}`,
}

/** Makes a line that sets a variable for programs started from this shell. */
export function setLine(shell: ShellName, name: string, value: string): string {
  return assignments[shell](name, quote(shell, value))
}

/** Makes a line that starts a program. */
export function commandLine(shell: ShellName, words: readonly Word[]): string {
  return words.map((word) => writeWord(shell, word)).join(' ')
}

/** Words that need no quotes in any of the three shells. Without quotes they are easier to read. */
const plainWord = /^(?:--?[A-Za-z][\w-]*|[A-Za-z0-9_/][\w./-]*)$/

function writeWord(shell: ShellName, word: Word): string {
  if (typeof word === 'string') return plainWord.test(word) ? word : quote(shell, word)
  return shell === 'powershell' ? `"$HOME/${word.home}"` : `~/${word.home}`
}

/** The shell that a person most likely uses. */
export function likelyShell(platform: NodeJS.Platform, shellVariable: string | undefined): ShellName {
  if (platform === 'win32' && !shellVariable) return 'powershell'
  if (/(?:^|\/)fish$/.test(shellVariable ?? '')) return 'fish'
  return /(?:^|\/)pwsh$/.test(shellVariable ?? '') ? 'powershell' : 'posix'
}
