import { isMap, isSeq, parseDocument, stringify, type YAMLSeq } from 'yaml'
import type { PresetUpstream } from '../catalog/presets.ts'
import { flowOf, indented, isBlank, TextEdits } from './text-edits.ts'

/** A row of prices with the keys of the configuration file. Amounts are decimal texts; other values stay as read. */
type WrittenRow = Readonly<Record<string, unknown>>
type PriceEntry = WrittenRow | readonly WrittenRow[]

/** A model of the catalog, with the keys that the configuration file uses. */
export type CatalogEntry = {
  id: string
  wire: string
  upstream: string
  max_output_tokens: number
  context_window?: number
  profile?: string
  hosted_tools?: 'refuse'
  prices: PriceEntry
}

type EntryFigures = Partial<Pick<CatalogEntry, 'max_output_tokens' | 'context_window' | 'prices'>>

export type CatalogChange = {
  /** The new value of `pinned`: the date that each row of the models list shows as `created` (spec 9.4). */
  pinned: string
  /** An upstream to add. If an upstream with this name exists, nothing is added. */
  upstream?: { name: string } & PresetUpstream
  /** Calendars that the prices refer to, by name. Each is added unless a calendar with this name exists. */
  calendars?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Models to add after the existing ones, each below a comment. */
  added: readonly { entry: CatalogEntry; comment: string }[]
  /** New figures for existing models. `place` is the index of the model in `catalog.models`. */
  updated: readonly { place: number; figures: EntryFigures }[]
}

/** Lists the models in the text of a file, without checking them. */
export function listEntries(source: string): Record<string, unknown>[] {
  const value = parseDocument(source).toJS() as { catalog?: { models?: unknown } } | null
  const models = value?.catalog?.models
  return Array.isArray(models) ? models.map((model) => model ?? {}) : []
}

/**
 * Returns the text of the file with the change. All other characters stay the same, including comments and blank lines.
 * @throws Error if the text is not YAML, or has a form that cannot be edited
 */
export function editCatalog(
  source: string,
  { pinned, upstream, calendars = {}, added, updated }: CatalogChange,
): string {
  const document = parseDocument(source)
  if (document.errors.length > 0) throw new Error('The file is not valid YAML: triwire check tells where')
  const root = document.contents
  if (root !== null && (!isMap(root) || root.flow)) throw new Error('The file must be a map of keys: change it by hand')
  const edits = new TextEdits(source)
  const entries = added.map(({ entry, comment }) => blockOf(entry, comment))
  /** Adds an entry to a map at the root, unless the map has it. @param value the same entry, for a map in flow style */
  const putUnder = (key: string, name: string, text: string, value: Record<string, unknown>): void => {
    const there = root?.get(key, true)
    if (there === undefined) edits.append(`${key}:\n${indented(text, 2)}`)
    else if (!isMap(there) && !isBlank(there)) throw new Error(`\`${key}\` is no map: change it by hand`)
    else if (!isMap(there) || !there.has(name)) edits.addLines(there, text, value)
  }
  const catalog = root?.get('catalog', true)
  const fresh = `pinned: ${pinned}\nmodels:\n${indented(entries.join(''), 2)}`
  if (!isMap(catalog) || catalog.items.length === 0) putUnder('catalog', 'catalog', fresh, {})
  else {
    const models = catalog.get('models', true)
    if (!isSeq(models) && !isBlank(models)) throw new Error('`catalog` has no list of models: change it by hand')
    if (catalog.flow) throw new Error('`catalog` is written in one line: change it by hand')
    if (isSeq(models)) for (const { place, figures } of updated) update(edits, models, place, figures)
    if (entries.length > 0) edits.addItems(models, entries)
    // If the catalog has no `pinned` yet, that key is added after the new models.
    edits.setIn(catalog, 'pinned', pinned)
  }
  if (upstream) {
    const { name, baseUrl, keyVariable, paths, headers, keyHeader, account } = upstream
    const main = { name: 'main', ...(account ?? { key: `\${${keyVariable}}` }) }
    const ways = { ...(paths && { paths }), ...(headers && { headers }), ...(keyHeader && { key_header: keyHeader }) }
    const lines = Object.entries(ways).map(([key, value]) => `  ${key}: ${flowOf(value)}\n`)
    const text = `${plain(name)}:\n  base_url: ${plain(baseUrl)}\n${lines.join('')}  accounts:\n    - ${flowOf(main)}\n`
    putUnder('upstreams', name, text, { [name]: { base_url: baseUrl, ...ways, accounts: [main] } })
  }
  for (const [name, calendar] of Object.entries(calendars))
    putUnder('calendars', name, `${plain(name)}: ${flowOf(calendar)}\n`, { [name]: calendar })
  return edits.apply()
}

function update(edits: TextEdits, models: YAMLSeq, place: number, { prices, ...figures }: EntryFigures): void {
  const model = models.items[place]
  if (!isMap(model)) throw new Error(`catalog.models[${place}] stands elsewhere in the file: change it by hand`)
  for (const [key, value] of Object.entries(figures)) edits.setIn(model, key, String(value))
  const own = model.get('prices', true)
  if (!prices) return
  if (!isMap(own)) throw new Error(`catalog.models[${place}].prices stands elsewhere in the file: change it by hand`)
  for (const [kind, value] of Object.entries(prices)) edits.setIn(own, kind, flowOf(value))
}

/** Formats a catalog entry as an item of a YAML block list, in the style that people use. */
function blockOf({ prices, ...entry }: CatalogEntry, comment: string): string {
  const lines = Object.entries(entry).map(([key, value]) => `${key}: ${plain(value)}`)
  const rows: readonly WrittenRow[] = Array.isArray(prices) ? prices : [prices as WrittenRow]
  const isShort = rows.length === 1 && !Object.values(rows[0]!).some(Array.isArray)
  if (isShort) lines.push(`prices: ${flowOf(rows[0])}`)
  else
    lines.push(
      'prices:',
      ...rows.flatMap((row) => {
        if (!Array.isArray(prices)) return linesOf(row).map((line) => `  ${line}`)
        return linesOf(row).map((line, index) => `  ${index === 0 ? '- ' : '  '}${line}`)
      }),
    )
  const [first, ...rest] = lines
  // A line break in a name from a price file would end the comment, and the rest would become configuration.
  return [`# ${comment.replace(/[\p{C}\p{Z}]+/gu, ' ')}`, `- ${first}`, ...rest.map((line) => `  ${line}`), ''].join(
    '\n',
  )
}

/** Formats the keys of a row, each on its own line. Lists come last. */
function linesOf(row: WrittenRow): string[] {
  const entries = Object.entries(row)
  return [
    ...entries.filter(([, value]) => !Array.isArray(value)).map(([kind, value]) => `${kind}: ${flowOf(value)}`),
    ...entries.flatMap(([kind, value]) =>
      Array.isArray(value) ? [`${kind}:`, ...value.map((item) => `  - ${flowOf(item)}`)] : [],
    ),
  ]
}

/** Writes a value in one line, with quotes only if it needs them. */
function plain(value: unknown): string {
  return stringify(value, { lineWidth: 0, blockQuote: false }).trim()
}
