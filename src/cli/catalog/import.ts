import { isDeepStrictEqual } from 'node:util'
import type { Command } from 'commander'
import { asObject } from '../../bytes/json.ts'
import type { Preset, PresetsFile, PriceTexts } from '../../catalog/presets.ts'
import type { ModelWire } from '../../catalog/wire-names.ts'
import { type CatalogChange, type CatalogEntry, listEntries } from '../../config/catalog-edit.ts'
import { configFile } from '../../config/load.ts'
import { presetsBeside } from './presets-file.ts'
import { fillSteps, type ListedModel, readListed } from './price-files.ts'
import { type Proposal, type ProposeOptions, propose, readSource, today } from './propose.ts'

type ImportOptions = ProposeOptions & { upstream?: string; wire?: ModelWire; profile?: string }

/**
 * Runs `catalog import`, which reads limits and prices from a published price file. Named models are updated, or added
 * if the catalog lacks them. Without names, each model of the catalog that the file has is updated.
 */
export async function importPrices(
  priceFile: string,
  ids: readonly string[],
  options: ImportOptions,
  command: Command,
): Promise<void> {
  const models = readListed(priceFile)
  const file = configFile(command.optsWithGlobals())
  const listed = { models, presets: presetsBeside(file).presets }
  const source = readSource(file)
  const known = listEntries(source).map((entry, place) => ({ entry, place }))
  const plan: ImportPlan = { added: [], updated: [], left: [], notes: [] }
  if (ids.length > 0) {
    for (const id of ids) takeNamed(id, listed, known, options, plan)
  } else {
    for (const { entry, place } of known.filter(
      ({ entry }) => !('chain' in entry) && (options.upstream === undefined || upstreamOf(entry) === options.upstream),
    )) {
      takeUpdate(String(entry['id']), find(nameOf(entry), listed, upstreamOf(entry)), { entry, place }, plan)
    }
  }
  const { left, notes, ...change } = plan
  await propose({ file, change: { pinned: today(), ...change }, left, notes }, options, command)
}

type CatalogRow = { entry: Record<string, unknown>; place: number }
type ImportPlan = {
  added: CatalogChange['added'][number][]
  updated: CatalogChange['updated'][number][]
  left: Proposal['left'][number][]
  notes: string[]
}
type ListedMatch = { model: ListedModel } | { why: string }
/** The models of the price file, and the presets that describe their providers. */
type ImportSource = { models: readonly ListedModel[]; presets: PresetsFile['presets'] }

function takeNamed(
  id: string,
  listed: ImportSource,
  known: readonly CatalogRow[],
  options: ImportOptions,
  plan: ImportPlan,
) {
  const exact = listed.models.filter((model) => fullName(model) === id)
  const bareId = exact[0]?.id ?? id.slice(id.indexOf('/') + 1)
  // A catalog entry whose id is the typed `provider/id` may be another provider's model. Such an entry is not meant.
  const isMeant = (found: ListedMatch) => exact.length === 0 || ('model' in found && exact.includes(found.model))
  const isCalled = (entry: Record<string, unknown>, name: unknown) =>
    name === bareId || (name === id && isMeant(find(id, listed, upstreamOf(entry))))
  const there = known.find(({ entry }) => !('chain' in entry) && isCalled(entry, nameOf(entry)))
  const found = find(id, listed, there ? upstreamOf(there.entry) : options.upstream, exact)
  if (there) return takeUpdate(id, found, there, plan)
  const named = known.find(({ entry }) => isCalled(entry, entry['id']))
  if (named) return takeUpdate(id, find(nameOf(named.entry), listed, upstreamOf(named.entry)), named, plan)
  const bare = 'model' in found ? found.model.id : id
  if (plan.added.some(({ entry }) => entry.id === bare)) return
  if ('why' in found) return void plan.left.push({ id, why: found.why })
  const { model } = found
  if (options.upstream === undefined)
    throw new Error(`${bare} is not in the catalog yet: name the upstream that serves it with --upstream`)
  if (!model.prices) return void plan.left.push({ id, why: 'has no price in the file' })
  if (model.maxOutputTokens === undefined)
    return void plan.left.push({ id, why: 'has no maximum output in the file: add it by hand' })
  const { wire, profile } = waysOf(model, listed.presets, options)
  if (wire === undefined)
    return void plan.left.push({
      id,
      why: `${model.provider} is not known here: say with --wire what its upstream speaks`,
    })
  note(bare, model, plan)
  const entry: CatalogEntry = {
    id: bare,
    wire,
    upstream: options.upstream,
    ...figuresOf(model),
    max_output_tokens: model.maxOutputTokens,
    ...(profile !== undefined && { profile }),
    prices: model.prices,
  }
  plan.added.push({ entry, comment: `figures of ${model.provider}, imported ${today()}` })
}

function takeUpdate(id: string, found: ListedMatch, { entry, place }: CatalogRow, plan: ImportPlan): void {
  if ('chain' in entry) return void plan.left.push({ id, why: 'is a chain: import its models, which have the figures' })
  if (plan.updated.some((one) => one.place === place)) return
  if ('why' in found) return void plan.left.push({ id, why: found.why })
  const { max_output_tokens: most, prices, ...others } = figuresOf(found.model)
  const merged = prices && mergePrices(entry['prices'], prices)
  if (merged && 'why' in merged) plan.left.push({ id, why: `${merged.why}, and change them by hand` })
  const { texts, gaps = [] } = merged && 'texts' in merged ? merged : {}
  const rest = { ...others, ...(texts && { prices: texts }) }
  // A maximum below the provider's is the operator's choice, so it is kept.
  const own = entry['max_output_tokens']
  const isChosen = typeof own === 'number' && most !== undefined && own < most
  if (isChosen) plan.notes.push(`${id}: its maximum output stays ${own}; the file has ${most}.`)
  const figures = { ...rest, ...(!isChosen && most !== undefined && { max_output_tokens: most }) }
  const changed = Object.fromEntries(
    Object.entries(figures).filter(([key, value]) => !isSameFigure(entry[key], value)),
  ) as typeof figures
  if (Object.keys(changed).length === 0) return
  note(id, { ...found.model, gaps: [...found.model.gaps, ...gaps] }, plan)
  plan.updated.push({ place, figures: changed })
}

/**
 * Returns the prices of the file that may replace the prices of an entry. If a person must compare the prices first,
 * returns the reason (`why`).
 */
function mergePrices(there: unknown, told: PriceTexts): { texts: PriceTexts; gaps: string[] } | { why: string } {
  if (Array.isArray(there)) return { why: 'has prices by date: compare them with the file' }
  const own = asObject(there) ?? {}
  const lacksOut = (kind: 'tiers' | 'geos') =>
    Object.entries(asObject(own[kind]) ?? {}).some(([name, one]) => asObject(one) && !asObject(told[kind])?.[name])
  const isBound =
    (['bands', 'steps'] as const).some((kind) => own[kind] && told[kind] === undefined) ||
    (['tiers', 'geos'] as const).some(lacksOut)
  if (isBound && !isSameFigure(own, told))
    return {
      why: 'has prices by hour or size of input, or written-out prices of a tier or geography, which the file lacks: compare them with the file',
    }
  const { steps, gaps } = fillSteps({ ...own, ...told } as PriceTexts)
  // The file may lack tools, and factors of tiers and geographies, that the entry has.
  const kept = (['calls', 'tiers', 'geos'] as const).flatMap((kind) =>
    told[kind] ? [[kind, { ...asObject(own[kind]), ...told[kind] }]] : [],
  )
  return { texts: { ...told, ...Object.fromEntries(kept), ...(steps && { steps }) }, gaps }
}

/** Compares figures as texts: 3, "3" and "3.0" are the same price. */
function isSameFigure(there: unknown, told: unknown): boolean {
  if (typeof told !== 'object' || told === null) return plain(there) === plain(told)
  if (Array.isArray(told)) {
    return Array.isArray(there) && there.length === told.length && told.every((one, at) => isSameFigure(there[at], one))
  }
  return Object.entries(told).every(([key, value]) => isSameFigure((there as Record<string, unknown>)?.[key], value))
}

function plain(value: unknown): string {
  const text = String(value)
  return /^\d+\.\d+$/.test(text) ? text.replace(/\.?0+$/, '') : text
}

function note(id: string, { gaps, leftOut }: ListedModel, { notes }: ImportPlan): void {
  if (gaps.length > 0) notes.push(`${id}: the file does not tell ${gaps.join(', ')}.`)
  if (leftOut.length > 0) notes.push(`${id}: left out, since an entry has no place for it: ${leftOut.join(', ')}.`)
}

/** Returns the figures of a model in the file. A context window smaller than the maximum output is ignored. */
function figuresOf({ maxOutputTokens, contextWindow, prices }: ListedModel) {
  const hasWindow = contextWindow !== undefined && contextWindow >= (maxOutputTokens ?? 0)
  return {
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    ...(hasWindow && { context_window: contextWindow }),
    ...(prices && { prices }),
  }
}

function fullName({ id, provider }: ListedModel): string {
  return `${provider}/${id}`
}

/**
 * Finds a model by its id or `provider/id`. If several models have this name, those of the upstream's provider are
 * preferred, and then those in `exact`. If several still remain, their figures must be the same.
 * @param exact models that were named as `provider/id`
 */
function find(
  name: string,
  { models, presets }: ImportSource,
  upstream: string | undefined,
  exact: readonly ListedModel[] = [],
): ListedMatch {
  const named = models.filter((model) => model.id === name || fullName(model) === name)
  const preset = Object.hasOwn(presets, upstream ?? '') ? presets[upstream!] : undefined
  const own = named.filter(({ provider }) => provider === upstream || preset?.listedAs.includes(provider))
  const [first, ...others] = [own, exact].find(({ length }) => length > 0) ?? named
  if (!first) return { why: 'is not in the file' }
  if (others.every((other) => isDeepStrictEqual(figuresOf(other), figuresOf(first)))) return { model: first }
  const providers = [...new Set(named.map(({ provider }) => provider))].slice(0, 5).join(', ')
  return { why: `several providers of the file have it at different prices (${providers}): name it as provider/id` }
}

function waysOf(model: ListedModel, presets: ImportSource['presets'], { wire, profile }: ImportOptions) {
  const preset = Object.values(presets).find(({ listedAs }) => listedAs.includes(model.provider))
  const own = preset && wire === undefined ? profileOf(preset, model) : undefined
  const chosen = profile ?? own
  return { wire: wire ?? preset?.wire, profile: chosen }
}

function profileOf(preset: Preset, { id, reasons, samples }: ListedModel): string {
  const known = preset.models.find((model) => model.id === id)
  if (known) return known.profile ?? preset.profile
  if (!samples && preset.fixedSamplingProfile) return preset.fixedSamplingProfile
  return (reasons && preset.reasoningProfile) || preset.profile
}

/** Returns the name of the model's first upstream. */
function upstreamOf({ upstream }: Record<string, unknown>): string | undefined {
  const [first] = [upstream].flat()
  return typeof first === 'string' ? first : (first as { name?: string } | undefined)?.name
}

/** Returns the name of the model at its first upstream. */
function nameOf({ upstream, upstream_model: name, id }: Record<string, unknown>): string {
  const [first] = [upstream].flat()
  return String(asObject(first)?.['upstream_model'] ?? name ?? id)
}
