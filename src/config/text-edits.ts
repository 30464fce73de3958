import { isMap, isScalar, isSeq, type Pair, type Scalar, type YAMLMap, type YAMLSeq } from 'yaml'

/** Collects changes of a YAML text by position, and applies them together. */
export class TextEdits {
  readonly #source: string
  readonly #lineEnd: string
  readonly #edits: { start: number; end: number; text: string }[] = []
  #tail = ''

  constructor(source: string) {
    this.#source = source
    this.#lineEnd = source.includes('\r\n') ? '\r\n' : '\n'
  }

  /** Sets the value of a key, or adds the key at the end. @param text one line of YAML */
  setIn(map: YAMLMap, key: string, text: string): void {
    const pair = map.items.find((one) => isScalar(one.key) && String(one.key.value) === key)
    if (rangeOf(pair?.value)) this.#replace(pair!.value, text)
    else if (map.flow) this.#putIntoFlow(map, `${key}: ${text}`)
    else this.#putBehind(map, indented(`${key}: ${text}\n`, this.#columnOf(map)))
  }

  /** Adds keys at the end of a map. @param value the same keys and values, used if the map is in flow style */
  addLines(map: YAMLMap | Scalar, text: string, value: Record<string, unknown>): void {
    if (isScalar(map) || map.items.length === 0) this.#replaceEmpty(map, text)
    else if (map.flow) this.#putIntoFlow(map, flowOf(value).slice(2, -2))
    else this.#putBehind(map, indented(text, this.#columnOf(map)))
  }

  /** Adds items at the end of a list. @param items YAML texts with a dash and without indentation */
  addItems(list: YAMLSeq | Scalar, items: readonly string[]): void {
    if (isScalar(list) || list.items.length === 0) this.#replaceEmpty(list, items.join(''))
    else if (list.flow) throw new Error('The list of models is written in one line: change it by hand')
    else this.#putBehind(list, indented(items.join(''), this.#columnOf(list)))
  }

  /** Adds text at the end of the file. */
  append(text: string): void {
    this.#tail += text
  }

  apply(): string {
    let text = this.#source
    // Edits are applied from the end of the text, so positions stay valid. At one position, texts keep their order.
    const order = this.#edits.map((edit, at) => ({ ...edit, at })).sort((a, b) => b.start - a.start || b.at - a.at)
    for (const { start, end, text: put } of order) text = text.slice(0, start) + this.#native(put) + text.slice(end)
    if (this.#tail === '') return text
    const isOpen = text !== '' && !text.endsWith('\n')
    return text + (isOpen ? this.#lineEnd : '') + this.#native(this.#tail)
  }

  #put(start: number, end: number, text: string): void {
    this.#edits.push({ start, end, text })
  }

  /** Inserts lines below a collection. A comment on the last line of the collection stays on that line. */
  #putBehind(collection: YAMLMap | YAMLSeq, text: string): void {
    const last = lastOf(collection)
    // The range of a block scalar includes its line break.
    const at = this.#source[last - 1] === '\n' ? last - 1 : this.#source.indexOf('\n', last)
    if (at >= 0) this.#put(at + 1, at + 1, text)
    else this.#put(this.#source.length, this.#source.length, `\n${text}`)
  }

  #putIntoFlow(map: YAMLMap, text: string): void {
    const [start = 0] = rangeOf(map) ?? []
    const last = map.items.at(-1)
    // The text is inserted directly after the value, because a comment may follow on the line.
    const at = last ? lastOf(last.value ?? last.key) : start + 1
    this.#put(at, at, `${last ? ',' : ''} ${text}`)
  }

  /** Replaces `[]`, `{}` or a missing value with lines below the key. */
  #replaceEmpty(value: YAMLMap | YAMLSeq | Scalar, text: string): void {
    const [start = 0] = rangeOf(value) ?? []
    const line = this.#source.slice(this.#source.lastIndexOf('\n', start - 1) + 1, start)
    const column = line.length - line.trimStart().length
    this.#replace(value, `\n${indented(text, column + 2).trimEnd()}`)
  }

  /** Replaces a value. If it is missing, blanks separate the text from its key and from a comment. */
  #replace(value: unknown, text: string): void {
    const [start, end] = [rangeOf(value)![0]!, lastOf(value)]
    const [before, after] = [this.#source[start - 1] === ':' ? ' ' : '', this.#source[end] === '#' ? ' ' : '']
    this.#put(start, end, before + text + after)
  }

  /** Returns the column of the first key or the first dash. */
  #columnOf(collection: YAMLMap | YAMLSeq): number {
    const [start = 0] = rangeOf(collection) ?? []
    return start - (this.#source.lastIndexOf('\n', start - 1) + 1)
  }

  #native(text: string): string {
    return this.#lineEnd === '\n' ? text : text.replace(/\n/g, this.#lineEnd)
  }
}

/** Whether a key has no value, or null. */
export function isBlank(node: unknown): node is Scalar {
  return isScalar(node) && node.value === null
}

function rangeOf(node: unknown): readonly number[] | undefined {
  return (node as { range?: readonly number[] | null } | null | undefined)?.range ?? undefined
}

/** Returns the end of the last value in a node, without comments after it. */
function lastOf(node: unknown): number {
  if ((isMap(node) || isSeq(node)) && !node.flow && node.items.length > 0) {
    const last = node.items.at(-1) as Pair | unknown
    const value = isMap(node) ? ((last as Pair).value ?? (last as Pair).key) : last
    return lastOf(value)
  }
  return rangeOf(node)?.[1] ?? 0
}

/** Writes a value on one line, with texts in quotes. Decimals stay texts, so that no reader rounds them. */
export function flowOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flowOf).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([key, one]) => `${/^[\w-]+$/.test(key) ? key : JSON.stringify(key)}: ${flowOf(one)}`)
    .join(', ')} }`
}

export function indented(text: string, width: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(width))
}
