import type { Command } from 'commander'
import { type DatedPrices, type Preset, type PresetModel, type PriceTexts, rowNow } from '../../catalog/presets.ts'
import { type CatalogChange, type CatalogEntry, listEntries } from '../../config/catalog-edit.ts'
import { configFile } from '../../config/load.ts'
import { usage } from '../options.ts'
import { formatTable, print } from '../print.ts'
import { calendarsOf, presetsBeside } from './presets-file.ts'
import { type ProposeOptions, propose, readSource, today } from './propose.ts'

type AddOptions = ProposeOptions & { upstream?: string; price: Record<string, string> }

type Texts = DatedPrices['texts']

/** Runs `catalog add`, which adds a provider's models to the configuration, with limits and prices of the preset. */
export async function addPreset(
  name: string | undefined,
  ids: readonly string[],
  options: AddOptions,
  command: Command,
): Promise<void> {
  const file = configFile(command.optsWithGlobals())
  const { presets, calendars } = presetsBeside(file)
  if (name === undefined) return listPresets(presets, command)
  const preset = Object.hasOwn(presets, name) ? presets[name]! : undefined
  if (!preset) throw usage(`there is no preset '${name}': name one of ${Object.keys(presets).join(', ')}`)
  if (preset.models.length === 0) throw new Error(nothingKnown(name))
  const upstream = options.upstream ?? name
  const chosen = choose(name, preset, ids)
  if (Object.keys(options.price).length > 0 && chosen.length !== 1)
    throw usage('--price says what one model costs: name that model')
  const there = new Set(
    listEntries(readSource(file)).flatMap(({ id, also }) => [id, ...(Array.isArray(also) ? also : [])]),
  )
  const left: { id: string; why: string }[] = []
  const notes: string[] = []
  const added: CatalogChange['added'][number][] = []
  for (const model of chosen) {
    const { id, prices } = model
    const texts = withPrices(id, prices, options.price)
    if (there.has(id)) left.push({ id, why: 'is in the file already; triwire catalog import brings newer figures' })
    else if (!texts) left.push({ id, why: unpriced })
    else {
      const comment = commentOf(prices, options.price)
      added.push({
        entry: entryOf(preset, model, upstream, texts),
        comment: preset.calls ? `${comment}; calls: ${preset.calls.source}` : comment,
      })
      if (prices?.note) notes.push(`${id}: ${prices.note}.`)
    }
  }
  if (added.length > 0) notes.push(keyNote(preset.upstream), 'One credit is one US dollar here.')
  if (added.length > 0 && !preset.calls)
    notes.push(
      "Calls of the provider's own tools are refused, as no price of them is known here: `hosted_tools` and `prices.calls` change that.",
    )
  const used = new Set(added.flatMap(({ entry: { prices } }) => calendarsOf(prices as Texts)))
  const change = {
    ...{ pinned: today(), upstream: { name: upstream, ...preset.upstream }, added, updated: [] },
    calendars: Object.fromEntries(Object.entries(calendars).filter(([calendar]) => used.has(calendar))),
  }
  await propose({ file, change, left, notes }, options, command)
}

/** Returns a sentence that names the variable with the key, and other variables that the configuration reads. */
function keyNote({ account, keyVariable, ...settings }: Preset['upstream']): string {
  const more = new Set(Array.from(JSON.stringify(settings).matchAll(/\$\{(\w+)\}/g), ([, name]) => name))
  const key = account
    ? `The credential is that of ${keyVariable}, or of the machine that triwire runs on: see docs/clouds.md.`
    : `The key is read from ${keyVariable}.`
  return more.size === 0 ? key : `${key} Set ${[...more].join(' and ')} too.`
}

const unpriced =
  'its price is not known here with a day and a source; give it with --price input=… --price output=… (and cache_read=…, cache_write=… where its provider has them), or take it from a price file by triwire catalog import'

function nothingKnown(name: string): string {
  return `Of ${name} no model is known here with a dated price: take its models from a price file by triwire catalog import`
}

function choose(name: string, { models }: Preset, ids: readonly string[]): readonly PresetModel[] {
  const unknown = ids.find((id) => !models.some((model) => model.id === id))
  if (unknown !== undefined) {
    const known = models.map(({ id }) => id).join(', ')
    throw usage(`the preset ${name} has no model '${unknown}': it has ${known}; triwire catalog import takes others`)
  }
  return ids.length > 0 ? models.filter(({ id }) => ids.includes(id)) : models
}

function withPrices(id: string, dated: DatedPrices | undefined, given: Record<string, string>): Texts | undefined {
  const isGiven = Object.keys(given).length > 0
  if (dated && Array.isArray(dated.texts)) {
    if (isGiven) throw usage(`${id} has prices by date: add it without --price, and change its rows by hand`)
    return dated.texts
  }
  const { input, output, ...rest }: Partial<PriceTexts> = { ...(dated && rowNow(dated)), ...given }
  return input === undefined || output === undefined ? undefined : { input, ...rest, output }
}

function entryOf(preset: Preset, model: PresetModel, upstream: string, prices: Texts): CatalogEntry {
  return {
    id: model.id,
    wire: preset.wire,
    upstream,
    max_output_tokens: model.maxOutputTokens,
    context_window: model.contextWindow,
    profile: model.profile ?? preset.profile,
    ...(preset.calls ? { prices: withCalls(prices, preset.calls.texts) } : { hosted_tools: 'refuse', prices }),
  }
}

function withCalls(prices: Texts, calls: PriceTexts['calls']): Texts {
  const add = (row: PriceTexts): PriceTexts => ({ ...row, ...(calls && { calls }) })
  return Array.isArray(prices) ? prices.map(add) : add(prices as PriceTexts)
}

function commentOf(dated: DatedPrices | undefined, given: Record<string, string>): string {
  if (!dated) return 'prices as given when it was added'
  const own = Object.keys(given).length > 0 ? `, but ${Object.keys(given).join(', ')}` : ''
  return `prices of ${dated.asOf}, ${dated.source}${own}${dated.note ? `; ${dated.note}` : ''}`
}

function listPresets(presets: Readonly<Record<string, Preset>>, command: Command): void {
  const rows = Object.entries(presets).flatMap(([preset, { wire, models }]) =>
    models.map(({ id, maxOutputTokens, contextWindow, prices }) => ({
      preset,
      id,
      wire,
      max_output_tokens: maxOutputTokens,
      context_window: contextWindow,
      prices: prices?.texts ?? null,
      as_of: prices?.asOf ?? null,
      source: prices?.source ?? null,
    })),
  )
  print(command, rows, () =>
    formatTable(
      ['preset', 'id', 'window', 'input / 1M', 'output / 1M', 'as of'],
      rows.map((row) => [
        row.preset,
        row.id,
        String(row.context_window),
        row.prices ? rowNow({ texts: row.prices }).input : '-',
        row.prices ? rowNow({ texts: row.prices }).output : '-',
        row.as_of ?? 'not known: give it with --price',
      ]),
    ),
  )
}
