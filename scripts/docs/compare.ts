/** Parts of an output that differ from run to run, and the word that stands for each. Applied in this order. */
const volatile: readonly (readonly [RegExp, string])[] = [
  [/\b(sk-tri|tri-op)-[\w…-]+/g, '$1-#'],
  [/\b(req|acct|key|ses|per|op|msg|resp|item|rs|call|chatcmpl)[_-](?:[\w-]*\d[\w-]*|[\w-]{12,}|…)/g, '$1_#'],
  [/\b\d+\/\d{4}-\d\d-\d\dT[\d:.]+Z\/[\w+/=…-]+/g, 'HEAD'],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/g, 'TIME'],
  [/\b\d{4}-\d\d(?:-\d\d)?\b/g, 'DAY'],
  [/\b[0-9a-f]{12,64}\b/g, 'DIGEST'],
  [/"(version|digest|price_version|config)":\s?"[^"]+"/g, '"$1":"#"'],
  [/https?:\/\/[^\s/'",)]+/g, 'ORIGIN'],
  [/\b(?:127\.0\.0\.1|localhost|0\.0\.0\.0):\d+/g, 'ADDRESS'],
  [/(?<![\w<])(?:…|~)?(?:\/[\w.@-]+)+\/([\w.@-]+)/g, 'PATH/$1'],
  [/…\/(?:[\w.@-]+\/)*([\w.@-]+)/g, 'PATH/$1'],
  [/\b\d+(?:\.\d+)? ?(?:ms|s|MB)\b/g, 'TIME'],
  [/\bprocess \d+/g, 'process #'],
]

/**
 * Whether an output contains a page's text, line by line. `…` alone on a line stands for any lines, and within a line
 * for any text. Several blanks count as one, because the width of columns varies. JSON is compared without blanks.
 */
export function isPrinted(expected: string, output: string, figuresDiffer = false): boolean {
  const isJson = /^\s*[[{]/.test(expected)
  if (isJson)
    return new RegExp(pattern(normalize(expected, figuresDiffer).replace(/\s/g, ''))).test(
      normalize(output, figuresDiffer).replace(/\s/g, ''),
    )
  const wanted = expected
    .trimEnd()
    .split('\n')
    .map((line) => toLine(line, figuresDiffer))
  const printed = output.split('\n').map((line) => toLine(line, figuresDiffer))
  return printed.some((_, start) => fits(wanted, printed.slice(start)))
}

function fits(wanted: readonly string[], printed: readonly string[]): boolean {
  if (wanted.length === 0) return true
  const [first, ...rest] = wanted as [string, ...string[]]
  if (first === '…') return printed.some((_, at) => fits(rest, printed.slice(at))) || rest.length === 0
  return printed.length > 0 && new RegExp(`^${pattern(first)}$`).test(printed[0]!) && fits(rest, printed.slice(1))
}

function toLine(line: string, figuresDiffer: boolean): string {
  return normalize(line, figuresDiffer).replace(/\s+/g, ' ').trim()
}

function normalize(text: string, figuresDiffer: boolean): string {
  let result = text
  for (const [part, word] of volatile) result = result.replace(part, word)
  return figuresDiffer ? result.replace(/\b\d+(?:\.\d+)?\b/g, 'N') : result
}

function pattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')
}
