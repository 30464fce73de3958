import { type CommentLine, readComments } from './comments.ts'

export type Finding = { line: number; text: string }

export const sentenceWordsMax = 25

const opening = /^\W*(What|Who|Whoever|Where|None|Nor|It)\b/

/** Words to replace, each with better ones. If a word also has a proper use, the pattern does not match that use. */
const words: readonly { pattern: RegExp; cure: string }[] = [
  { pattern: /\btold\b/gi, cure: 'returned, sent, logged, shown or reported' },
  { pattern: /(?<!\bthere )\b(?:is|are|was|were) none\b(?! of\b)/gi, cure: 'is invalid, or is not one' },
  // Proper: behind a proxy, the server behind it, leave behind, fall behind.
  {
    pattern:
      /(?<!\b(?:leav(?:e|es|ing)|left|fall|falls|falling|fallen|fell|lags?|server|model|upstream|simulator)\s(?:\w+\s){0,2})\bbehind\b(?! (?:(?:an?|the|any|every|our|another|one) )?(?:\w+ )?(?:proxy|proxies|balancer|gateway|flag|address|nginx|NAT)\b)/gi,
    cure: 'after',
  },
  { pattern: /\bwhoever\b/gi, cure: 'name the client, the operator or the caller' },
  { pattern: /\bhardly meant\b/gi, cure: 'is probably a mistake' },
  { pattern: /\b(?:he|his|him|himself)\b/gi, cure: 'they, their, them' },
  { pattern: /\bhouses?\b/gi, cure: 'code base, or gateway' },
  // Proper: room for a body, no room, make room.
  { pattern: /(?<!\b(?:no|make|makes|more|leave|leaves) )\brooms?\b(?! (?:for|left)\b|-)/gi, cure: 'module' },
  // Proper: an arrow function, an arrow key.
  { pattern: /\barrows?\b(?! (?:function|key)s?\b)/gi, cure: 'import, or import rule' },
]

/** Checks the comments of one source against the rules of plain English. */
export function findFaults(source: string): Finding[] {
  return readComments(source).flatMap(({ lines }) => {
    const paragraphs = splitParagraphs(lines)
    return paragraphs.flatMap((paragraph, index) => checkParagraph(paragraph, index === 0))
  })
}

/**
 * A paragraph or an item of a list, as one line. A code span is one word, and so is the name of a parameter.
 * @property lineAt maps a position in `text` to its line in the source
 */
type Paragraph = { text: string; lineAt: (position: number) => number }

function checkParagraph({ text, lineAt }: Paragraph, isFirst: boolean): Finding[] {
  const findings: Finding[] = []
  const unnamed = isFirst ? opening.exec(text) : null
  if (unnamed !== null) {
    findings.push({ line: lineAt(0), text: `begins with '${unnamed[1]}': name the subject` })
  }
  for (const { pattern, cure } of words) {
    for (const { 0: word, index } of text.matchAll(pattern)) {
      findings.push({ line: lineAt(index), text: `'${word}': write ${cure}` })
    }
  }
  for (const { sentence, index } of splitSentences(text)) {
    const count = countWords(sentence)
    if (count > sentenceWordsMax) {
      findings.push({
        line: lineAt(index),
        text: `a sentence of ${count} words: ${sentence.slice(0, 60)}…`,
      })
    }
  }
  return findings.sort((one, other) => one.line - other.line)
}

/** Matches instructions for tools, which are no prose. */
const directive = /^\s*(?:biome-ignore|@ts-|eslint-|c8 |v8 |# sourceMapping|\/ <reference)/

/** Splits a comment into paragraphs. Indented blocks, rows of tables and drawings are left out. */
function splitParagraphs(lines: readonly CommentLine[]): Paragraph[] {
  const paragraphs: CommentLine[][] = [[]]
  for (const { line, text } of lines) {
    const isProse = /\S/.test(text) && !/^\s{5,}|^\s*\||\S {2,}\S|[─-╿▶◀▲▼]/.test(text) && !directive.test(text)
    const isItem = /^\s*(?:[-*•]|\d+\.)\s/.test(text) || /^\s*@\w/.test(text)
    if (!isProse || isItem) paragraphs.push([])
    if (isProse) paragraphs.at(-1)!.push({ line, text: text.trim() })
  }
  return paragraphs.filter((paragraph) => paragraph.length > 0).map(joinLines)
}

function joinLines(lines: readonly CommentLine[]): Paragraph {
  const starts: number[] = []
  let raw = ''
  for (const { text } of lines) {
    starts.push(raw.length)
    raw += `${text} `
  }
  // Replacements are as long as the replaced texts, so that positions stay the same.
  const text = raw
    .replace(/`[^`]*`/g, (span) => `\`${'x'.repeat(span.length - 2)}\``)
    .replace(/(?<=@(?:param|property) )\w+/g, (name) => 'x'.repeat(name.length))
  return { text, lineAt: (position) => lines[starts.findLastIndex((start) => start <= position)]!.line }
}

/** Splits a text into sentences. They end at `.`, `?` or `!` before a capital or a code span, and before a tag. */
function splitSentences(text: string): { sentence: string; index: number }[] {
  const ends =
    /(?<!\b(?:e\.g|i\.e|vs|cf|no))[.?!]['")\]]*\s+(?=["'([]?[`\p{Lu}\d@])|\s(?=@(?:param|returns|throws|property)\b)/gu
  const sentences: { sentence: string; index: number }[] = []
  let index = 0
  for (const match of text.matchAll(ends)) {
    const end = match.index + match[0].length
    sentences.push({ sentence: text.slice(index, end), index })
    index = end
  }
  return [...sentences, { sentence: text.slice(index), index }]
}

/** Counts texts between blanks that have a letter or a digit. A tag and the name after it do not count. */
function countWords(sentence: string): number {
  const prose = sentence.replace(/^@(?:param|property)\s+\S+|^@\w+/, '')
  return prose.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}
