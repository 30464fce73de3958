import { isMap, isScalar, isSeq, type Pair, parseDocument, stringify, type YAMLMap, type YAMLSeq } from 'yaml'

/** Amounts as decimal strings: prices, steps (a list) and calls (a map), in the words of the file. */
export type PriceEntry = Readonly<Record<string, unknown>>

/** A model as it is written into the file. */
export type CatalogEntry = {
  id: string
  wire: string
  upstream: string
  max_output_tokens: number
  context_window?: number
  profile?: string
  prices: PriceEntry
}

type Figures = Partial<Pick<CatalogEntry, 'max_output_tokens' | 'context_window' | 'prices'>>

export type CatalogChange = {
  /** The day the list is pinned by this: `created` of every row (spec 9.4). */
  pinned: string
  /** Is added where no upstream has its name. */
  upstream?: { name: string; baseUrl: string; keyVariable: string }
  /** Behind those that are there, each below a comment. */
  added: readonly { entry: CatalogEntry; comment: string }[]
  /** Models that are there, by their place, and what is new of them. */
  updated: readonly { place: number; figures: Figures }[]
}

/** The models that a text lists, as they are written. */
export function listEntries(source: string): Record<string, unknown>[] {
  const value = parseDocument(source).toJS() as { catalog?: { models?: unknown } } | null
  const models = value?.catalog?.models
  return Array.isArray(models) ? models.map((model) => model ?? {}) : []
}

/**
 * The text of the file with the change in it. It is put in where it belongs: no other character moves, comments and blank
 * lines included. @throws Error for a text that is no YAML, or that has something else in these places.
 */
export function editCatalog(source: string, { pinned, upstream, added, updated }: CatalogChange): string {
  const document = parseDocument(source)
  if (document.errors.length > 0) throw new Error('The file is not valid YAML: triwire check tells where')
  const root = document.contents
  if (root !== null && !(isMap(root) && !root.flow))
    throw new Error('The file must be a map of keys: change it by hand')
  const edits = new Edits(source)
  const entries = added.map(({ entry, comment }) => blockOf(entry, comment))
  const catalog = root?.get('catalog', true)
  if (catalog === undefined || catalog === null) {
    edits.append(`catalog:\n  pinned: ${pinned}\n  models:\n${indented(entries.join(''), 4)}`)
  } else {
    const models = isMap(catalog) ? catalog.get('models', true) : undefined
    if (!isMap(catalog) || !isSeq(models)) throw new Error('`catalog` has no list of models: change it by hand')
    if (catalog.flow) throw new Error('`catalog` is written in one line: change it by hand')
    edits.setIn(catalog, 'pinned', pinned)
    for (const { place, figures } of updated) update(edits, models, place, figures)
    if (entries.length > 0) edits.addItems(models, entries)
  }
  if (upstream) {
    const upstreams = root?.get('upstreams', true)
    const { name, baseUrl, keyVariable } = upstream
    const account = flowOf({ name: 'main', key: `\${${keyVariable}}` })
    const text = `${plain(name)}:\n  base_url: ${baseUrl}\n  accounts:\n    - ${account}\n`
    if (upstreams === undefined || upstreams === null) edits.append(`upstreams:\n${indented(text, 2)}`)
    else if (!isMap(upstreams)) throw new Error('`upstreams` is no map: change it by hand')
    else if (!upstreams.has(name))
      edits.addLines(upstreams, text, {
        [name]: { base_url: baseUrl, accounts: [{ name: 'main', key: `\${${keyVariable}}` }] },
      })
  }
  return edits.apply()
}

function update(edits: Edits, models: YAMLSeq, place: number, { prices, ...figures }: Figures): void {
  const model = models.items[place]
  if (!isMap(model)) throw new Error(`catalog.models[${place}] stands elsewhere in the file: change it by hand`)
  for (const [key, value] of Object.entries(figures)) edits.setIn(model, key, String(value))
  const own = model.get('prices', true)
  if (!prices) return
  if (!isMap(own)) throw new Error(`catalog.models[${place}].prices stands elsewhere in the file: change it by hand`)
  for (const [kind, value] of Object.entries(prices)) edits.setIn(own, kind, flowOf(value))
}

/** One item of a block list, as people write it. */
function blockOf({ prices, ...entry }: CatalogEntry, comment: string): string {
  const lines = Object.entries(entry).map(([key, value]) => `${key}: ${plain(value)}`)
  const { steps, ...rates } = prices
  if (!Array.isArray(steps)) lines.push(`prices: ${flowOf(rates)}`)
  else {
    lines.push('prices:', ...Object.entries(rates).map(([kind, value]) => `  ${kind}: ${flowOf(value)}`), '  steps:')
    lines.push(...steps.map((step) => `    - ${flowOf(step)}`))
  }
  const [first, ...rest] = lines
  return [`# ${comment}`, `- ${first}`, ...rest.map((line) => `  ${line}`), ''].join('\n')
}

function plain(value: unknown): string {
  return stringify(value).trim()
}

/** In one line, text in quotes: a decimal that is no number is rounded by nobody. */
function flowOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flowOf).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([key, one]) => `${key}: ${flowOf(one)}`)
    .join(', ')} }`
}

function indented(text: string, width: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(width))
}

/** Changes of a text, by their places in it. */
class Edits {
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
    const at = this.#source.indexOf('\n', lastOf(collection))
    if (at >= 0) this.#put(at + 1, at + 1, text)
    else this.#put(this.#source.length, this.#source.length, `\n${text}`)
  }

  #putIntoFlow(map: YAMLMap, text: string): void {
    const [, end = 0] = rangeOf(map) ?? []
    const inside = this.#source.slice(0, end - 1).trimEnd().length
    const separator = map.items.length === 0 || this.#source[inside - 1] === ',' ? ' ' : ', '
    this.#put(inside, inside, separator + text)
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
