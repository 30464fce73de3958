import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'

/** One command of a page, as a reader would type it. */
export type PageCommand = {
  kind: 'command'
  text: string
  line: number
  /** Why the command cannot run here. Undefined if it can. */
  notHere: string | undefined
  exit: number
}

/** Text that the commands before it print, according to the page. */
export type PageOutput = { kind: 'output'; text: string; line: number; figuresDiffer: boolean; after: number }

/** A block that the reader puts into a file. */
export type PageFile = { kind: 'file'; name: string; text: string; line: number }

/** Lines that only the trial runs (`first`), or a text of the page that the trial replaces (`read`). */
export type PageSetUp = { kind: 'first'; text: string; line: number } | { kind: 'read'; from: string; to: string }

export type PageStep = PageCommand | PageOutput | PageFile | PageSetUp

export const programs =
  /^(?:[A-Z_]+=\S+ )*(?:triwire|npm|npx|node|curl|export|kubectl|helm|sudo|systemctl|podman|sqlite3|pg_dump|cp|git)(?: |$)/

/** The pages whose commands are tried. The pages of conformance are written by scripts/conformance.ts. */
export function commandPages(root: string): string[] {
  const docs = globSync('docs/*.md', { cwd: root }).filter((page) => !page.startsWith('docs/conformance'))
  return ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/README.md', ...docs.sort()]
}

/**
 * Returns the steps of a page in order. A fenced `sh` block has commands. A block of JSON or without a language, after
 * such a block, has their output. Marks are HTML comments, which readers do not see:
 *
 *     <!-- try: not here: REASON -->        the next block cannot run; `not here 2,3:` its second and third command
 *     <!-- try: exit 1 -->                  the last command of the next block ends with this code
 *     <!-- try: file NAME -->               the next block is written into this file
 *     <!-- try: output of COMMAND -->       the next block is what this command prints
 *     <!-- try: output differs: REASON -->  the next block is not compared
 *     <!-- try: figures differ -->          its numbers are not compared
 *     <!-- try: read A as B -->             from here on B is typed for A
 *     <!-- try: first LINES -->             runs before the next block, for the trial alone
 *
 * @throws Error for a mark that is unknown or lacks a reason, and for commands in an indented block
 */
export function readPage(page: string): PageStep[] {
  const steps: PageStep[] = []
  const lines = page.split('\n')
  let marks: Marks = {}
  // Blocks of output belong to the commands before them, up to the next heading.
  let isAfterCommands = false
  let commandsAt = 0
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!
    if (line.trim() === '') continue
    const mark = /^\s*<!-- try: /.test(line) ? readComment(lines, at) : undefined
    if (mark) {
      readMark(mark.text, at + 1, marks, steps)
      at = mark.end
      continue
    }
    const fence = /^(\s*)```(\S*)/.exec(line)
    if (!fence) {
      if (/^ {4,}/.test(line) && programs.test(line.trim()))
        throw new Error(`line ${at + 1}: a command outside of a fenced sh block`)
      if (line.startsWith('#')) isAfterCommands = false
      continue
    }
    const end = lines.findIndex((other, index) => index > at && other.trim() === '```')
    const indent = fence[1]!.length
    const text = lines
      .slice(at + 1, end)
      .map((one) => one.slice(indent))
      .join('\n')
    if (marks.file !== undefined) steps.push({ kind: 'file', name: marks.file, text: `${text}\n`, line: at + 1 })
    else if (fence[2] === 'sh') {
      commandsAt = steps.length
      steps.push(...readCommands(text, at + 2, marks))
      isAfterCommands = true
    } else if (marks.outputOf !== undefined) {
      const after = steps.length
      steps.push({ kind: 'command', text: marks.outputOf, line: at, notHere: undefined, exit: marks.exit ?? 0 })
      steps.push({ kind: 'output', text, line: at + 2, figuresDiffer: marks.figuresDiffer ?? false, after })
    } else if (['', 'json'].includes(fence[2]!) && isAfterCommands && marks.outputDiffers === undefined) {
      steps.push({ kind: 'output', text, line: at + 2, figuresDiffer: marks.figuresDiffer ?? false, after: commandsAt })
    }
    marks = {}
    at = end
  }
  return steps
}

type Marks = {
  notHere?: { commands: number[] | undefined; reason: string }
  exit?: number
  file?: string
  outputOf?: string
  outputDiffers?: string
  figuresDiffer?: boolean
}

/** Reads a comment, which may have several lines. @returns its text, and the index of its last line */
function readComment(lines: readonly string[], at: number): { text: string; end: number } {
  let end = at
  while (!lines[end]!.includes('-->')) end++
  const text = lines
    .slice(at, end + 1)
    .join('\n')
    .trim()
  return { text: text.slice('<!-- try: '.length, -'-->'.length).trim(), end }
}

type Reading = { marks: Marks; steps: PageStep[]; line: number }

const markForms: readonly (readonly [RegExp, (match: readonly string[], reading: Reading) => void])[] = [
  [
    /^not here(?: ([\d,]+))?: (.+)$/s,
    ([, which, reason], { marks }) => {
      marks.notHere = { commands: which?.split(',').map(Number), reason: reason! }
    },
  ],
  [
    /^exit (\d+)$/,
    ([, code], { marks }) => {
      marks.exit = Number(code)
    },
  ],
  [
    /^file (\S+)$/,
    ([, name], { marks }) => {
      marks.file = name!
    },
  ],
  [
    /^output of (.+)$/,
    ([, command], { marks }) => {
      marks.outputOf = command!
    },
  ],
  [
    /^output differs: (.+)$/s,
    ([, reason], { marks }) => {
      marks.outputDiffers = reason!
    },
  ],
  [
    /^figures differ$/,
    (_, { marks }) => {
      marks.figuresDiffer = true
    },
  ],
  [
    /^read (.+) as (.+)$/,
    ([, from, to], { steps }) => {
      steps.push({ kind: 'read', from: from!, to: to! })
    },
  ],
  [
    /^first\s(.+)$/s,
    ([, text], { steps, line }) => {
      steps.push({ kind: 'first', text: text!, line })
    },
  ],
]

function readMark(mark: string, line: number, marks: Marks, steps: PageStep[]): void {
  for (const [form, apply] of markForms) {
    const match = form.exec(mark)
    if (!match) continue
    apply(match, { marks, steps, line })
    return
  }
  throw new Error(`line ${line}: there is no mark "${mark}"`)
}

/** Returns the commands of a block. A command has one line, or several if bash needs them for a complete command. */
function readCommands(block: string, line: number, marks: Marks): PageCommand[] {
  const commands: PageCommand[] = []
  let text = ''
  let start = line
  for (const [index, one] of block.split('\n').entries()) {
    if (text === '') start = line + index
    text += text === '' ? one : `\n${one}`
    if (/^\s*(?:#.*)?$/.test(text)) {
      text = ''
      continue
    }
    if (one.endsWith('\\') || spawnSync('bash', ['-n'], { input: text }).status !== 0) continue
    commands.push({ kind: 'command', text, line: start, notHere: undefined, exit: 0 })
    text = ''
  }
  if (text !== '') throw new Error(`line ${start}: bash cannot read this command`)
  for (const [index, command] of commands.entries()) {
    const { commands: some, reason } = marks.notHere ?? {}
    if (reason !== undefined && (some === undefined || some.includes(index + 1))) command.notHere = reason
  }
  if (marks.exit !== undefined) commands.at(-1)!.exit = marks.exit
  return commands
}
