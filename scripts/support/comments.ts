/** One line of a comment, without its marks. `line` counts from 1. */
export type CommentLine = { line: number; text: string }

/** A block comment, or `//` comments on consecutive lines. */
export type Comment = { lines: CommentLine[] }

/** Each pattern matches at the current position only. */
const patterns = {
  blank: /\s+/y,
  lineComment: /\/\/[^\n]*/y,
  blockComment: /\/\*[\s\S]*?\*\//y,
  // A quote without a partner on its line is an apostrophe in the text of JSX.
  string: /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y,
  regex: /\/(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y,
  word: /[\p{ID_Start}$_#][\p{ID_Continue}$]*|\d[\w.]*/uy,
  templateText: /(?:[^\\`$]|\\[\s\S]|\$(?!\{))*/y,
}

/** After these words an expression begins, so that a slash begins a regular expression. */
const operatorWords = new Set(
  'return typeof case in of do else void delete throw new await yield instanceof default'.split(' '),
)

/**
 * Finds the comments of a TypeScript or TSX source without parsing it.
 * Strings, templates and regular expressions are skipped, so that `'https://…'` is no comment.
 */
export function readComments(source: string): Comment[] {
  const comments: Comment[] = []
  /** For each open `${`, the number of open braces before it. */
  const templates: number[] = []
  let braces = 0
  let line = 1
  let at = 0
  /** The last token that is neither blank nor comment. */
  let previous = ''
  /** The line of the last `//` comment if only blanks follow it so far. */
  let openLine = 0

  while (at < source.length) {
    if (take(patterns.blank) !== undefined) continue
    const start = line
    const comment = take(patterns.lineComment) ?? take(patterns.blockComment)
    if (comment !== undefined) addComment(comment, start)
    else readToken()
  }
  return comments

  function readToken(): void {
    openLine = 0
    const char = source[at]!
    if (char === '`') {
      at++
      readTemplate()
    } else if (char === '}' && templates.at(-1) === braces) {
      at++
      templates.pop()
      readTemplate()
    } else {
      const token =
        take(patterns.string) ??
        (char === '/' && beginsRegex() ? take(patterns.regex) : undefined) ??
        take(patterns.word)
      if (token === undefined) at++
      previous = token ?? char
      if (char === '{') braces++
      if (char === '}') braces--
    }
  }

  function readTemplate(): void {
    take(patterns.templateText)
    if (source.startsWith('${', at)) {
      at += 2
      templates.push(braces)
      previous = '{'
    } else {
      at++
      previous = '`'
    }
  }

  /** A slash after an operand divides. A slash after `<` closes a JSX element. */
  function beginsRegex(): boolean {
    return operatorWords.has(previous) || !/[\p{ID_Continue}$)\]}'"`<]$/u.test(previous)
  }

  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = at
    const text = pattern.exec(source)?.[0]
    if (text === undefined || text === '') return undefined
    at += text.length
    for (let index = text.indexOf('\n'); index >= 0; index = text.indexOf('\n', index + 1)) line++
    return text
  }

  function addComment(comment: string, start: number): void {
    const isLine = comment.startsWith('//')
    const lines = isLine ? [{ line: start, text: comment.slice(2) }] : readBlock(comment, start)
    if (isLine && openLine > 0 && openLine === start - 1) comments.at(-1)!.lines.push(...lines)
    else comments.push({ lines })
    openLine = isLine ? start : 0
  }
}

/** Takes the marks off a block comment: the slashes, and the star that begins each line. */
function readBlock(comment: string, start: number): CommentLine[] {
  return comment
    .slice(2, -2)
    .split('\n')
    .map((text, index) => ({ line: start + index, text: text.replace(index === 0 ? /^\*+/ : /^\s*\*/, '') }))
}
