import { isMap, isScalar, isSeq, type Pair, type YAMLMap, type YAMLSeq } from 'yaml'

/** Changes of a text, by their places in it. */
export class TextEdits {
  readonly #source: string
  readonly #lineEnd: string
  readonly #edits: { start: number; end: number; text: string }[] = []
  #tail = ''

  constructor(source: string) {
    this.#source = source
    this.#lineEnd = source.includes('\r\n') ? '\r\n' : '\n'
  }

  /** The value of a key, or a new key behind the last one. @param text in one line */
  setIn(map: YAMLMap, key: string, text: string): void {
    const pair = map.items.find((one) => isScalar(one.key) && String(one.key.value) === key)
    const [start] = rangeOf(pair?.value) ?? []
    if (start !== undefined) this.#put(start, lastOf(pair!.value), text)
    else if (map.flow) this.#putIntoFlow(map, `${key}: ${text}`)
    else this.#putBehind(map, indented(`${key}: ${text}\n`, this.#columnOf(map)))
  }

  /** Keys behind the last one of a map. @param value the same, for a map that is written in one line */
  addLines(map: YAMLMap, text: string, value: Record<string, unknown>): void {
    if (!map.flow && map.items.length > 0) this.#putBehind(map, indented(text, this.#columnOf(map)))
    else if (map.items.length > 0) this.#putIntoFlow(map, flowOf(value).slice(2, -2))
    else this.#replaceEmpty(map, text)
  }

  /** Items behind the last one of a list. @param items each with its dash, of no indentation */
  addItems(list: YAMLSeq, items: readonly string[]): void {
    if (list.items.length === 0) this.#replaceEmpty(list, items.join(''))
    else if (list.flow) throw new Error('The list of models is written in one line: change it by hand')
    else this.#putBehind(list, indented(items.join(''), this.#columnOf(list)))
  }

  /** Behind everything. */
  append(text: string): void {
    this.#tail += text
  }

  apply(): string {
    let text = this.#source
    // Of several at one place the first that was asked for stands first.
    const order = this.#edits.map((edit, at) => ({ ...edit, at })).sort((a, b) => b.start - a.start || b.at - a.at)
    for (const { start, end, text: put } of order) text = text.slice(0, start) + this.#native(put) + text.slice(end)
    if (this.#tail === '') return text
    const isOpen = text !== '' && !text.endsWith('\n')
    return text + (isOpen ? this.#lineEnd : '') + this.#native(this.#tail)
  }

  #put(start: number, end: number, text: string): void {
    this.#edits.push({ start, end, text })
  }

  /** On lines of its own, behind the line in which the collection ends, its comment included. */
  #putBehind(collection: YAMLMap | YAMLSeq, text: string): void {
    const last = lastOf(collection)
    // A text of several lines ends behind the last of them.
    const at = this.#source[last - 1] === '\n' ? last - 1 : this.#source.indexOf('\n', last)
    if (at >= 0) this.#put(at + 1, at + 1, text)
    else this.#put(this.#source.length, this.#source.length, `\n${text}`)
  }

  #putIntoFlow(map: YAMLMap, text: string): void {
    const [start = 0] = rangeOf(map) ?? []
    const last = map.items.at(-1)
    // Behind its value, and not behind what may be a comment.
    const at = last ? lastOf(last.value ?? last.key) : start + 1
    this.#put(at, at, `${last ? ',' : ''} ${text}`)
  }

  /** `[]` or `{}` becomes lines below its key. */
  #replaceEmpty(collection: YAMLMap | YAMLSeq, text: string): void {
    const [start = 0, end = 0] = rangeOf(collection) ?? []
    const line = this.#source.slice(this.#source.lastIndexOf('\n', start - 1) + 1, start)
    const column = line.length - line.trimStart().length
    this.#put(start, end, `\n${indented(text, column + 2).trimEnd()}`)
  }

  /** Where the first key stands, or the first dash. */
  #columnOf(collection: YAMLMap | YAMLSeq): number {
    const [start = 0] = rangeOf(collection) ?? []
    return start - (this.#source.lastIndexOf('\n', start - 1) + 1)
  }

  #native(text: string): string {
    return this.#lineEnd === '\n' ? text : text.replace(/\n/g, this.#lineEnd)
  }
}

function rangeOf(node: unknown): readonly number[] | undefined {
  return (node as { range?: readonly number[] | null } | null | undefined)?.range ?? undefined
}

/** Where the last value in it ends, before what stands behind. */
function lastOf(node: unknown): number {
  if ((isMap(node) || isSeq(node)) && !node.flow && node.items.length > 0) {
    const last = node.items.at(-1) as Pair | unknown
    const value = isMap(node) ? ((last as Pair).value ?? (last as Pair).key) : last
    return lastOf(value)
  }
  return rangeOf(node)?.[1] ?? 0
}

/** In one line, text in quotes: a decimal that is no number is rounded by nobody. */
export function flowOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flowOf).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([key, one]) => `${key}: ${flowOf(one)}`)
    .join(', ')} }`
}

export function indented(text: string, width: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(width))
}
