import { builtInPresets, type PriceTexts, rowNow } from '../../catalog/presets.ts'
import { readPriceFile } from '../catalog/price-files.ts'
import { type DeploymentWay, presetOfProvider } from './litellm-places.ts'
import { countOf, type Deployment, type LitellmMaking, type SourceFields } from './litellm-settings.ts'

/** The limits and prices of a deployment, as far as they are known. `notes` say what was assumed. */
export type ImportFigures = {
  maxOutput: number | undefined
  window: number | undefined
  prices: ImportPrices | undefined
  notes: readonly string[]
}

/** Prices in the form of our file: one row, or a list of rows by time. */
export type ImportPrices = PriceTexts | readonly PriceTexts[]

const priceName = /_cost(?:_|$)|pric/

/** Finds the limits and prices of a deployment, and reports which settings they come from. */
export function figuresOf(
  made: LitellmMaking,
  { name, path, params, info, figureNames, provider }: Deployment,
  { isOwn }: DeploymentWay,
): ImportFigures {
  const preset = presetOfProvider(provider)
  const ofOwn = preset?.models.find(({ id }) => figureNames.includes(id))
  const known = ofOwn ?? figureNames.flatMap((one) => allModels.find(({ id }) => id === one) ?? [])[0]
  const listed = figureNames.flatMap(
    (one) => made.options.listed?.find(({ id, provider: of }) => `${of}/${id}` === one || id === one) ?? [],
  )[0]
  const written = writtenPrices(made, path, params, info)
  const lookedUp = written || isOwn ? undefined : (listed?.prices ?? known?.prices?.texts)
  const free = isOwn || made.options.isUnpricedFree ? { input: '0', output: '0' } : undefined
  const prices = written ?? lookedUp ?? free
  const notes: string[] = []
  if (lookedUp && !listed?.prices && !ofOwn)
    notes.push(`${name}: its price at ${provider} is not known here; that of ${known!.id} at its maker is taken.`)
  if (lookedUp && made.options.lookedUpNote) notes.push(`${name}: ${made.options.lookedUpNote}`)
  if (prices === free)
    notes.push(`${name}: ${isOwn ? 'it is on a server of your own' : 'no price is known'}; it costs nothing.`)
  const outputs = [
    { path: `${path}.model_info.max_output_tokens`, value: info['max_output_tokens'] },
    { path: '', value: listed?.maxOutputTokens ?? known?.maxOutputTokens },
    { path: `${path}.litellm_params.max_tokens`, value: params['max_tokens'] },
    { path: `${path}.litellm_params.max_completion_tokens`, value: params['max_completion_tokens'] },
    { path: `${path}.model_info.max_tokens`, value: info['max_tokens'] },
  ].map((one) => ({ ...one, value: countOf(one.value) }))
  const output = outputs.find(({ value }) => value !== undefined)
  if (output?.path) made.note(output.path, 'carried', 'max_output_tokens')
  made.note(`${path}.model_info.max_tokens`, 'replaced', 'max_output_tokens is known more exactly')
  const inputs = countOf(info['max_input_tokens'])
  if (inputs !== undefined) made.note(`${path}.model_info.max_input_tokens`, 'carried', 'context_window')
  const window = inputs ?? listed?.contextWindow ?? known?.contextWindow
  const calls = lookedUp && !listed?.prices && ofOwn ? preset?.calls?.texts : undefined
  return {
    maxOutput: output?.value,
    window,
    prices: prices && calls ? withCalls(prices, calls) : prices,
    notes,
  }
}

/** Reads the token prices of a deployment. LiteLLM accepts them in `litellm_params` and in `model_info`. */
function writtenPrices(
  made: LitellmMaking,
  path: string,
  params: SourceFields,
  info: SourceFields,
): PriceTexts | undefined {
  const tokens = Object.fromEntries(
    Object.entries({ ...info, ...params })
      .filter(([key]) => priceName.test(key))
      .map(([key, value]) => [key, typeof value === 'string' && value.trim() !== '' ? Number(value) : value]),
  )
  if (Object.keys(tokens).length === 0) return undefined
  const [listed] = readPriceFile({ model: { litellm_provider: 'own', mode: 'chat', ...tokens } }, isPriceOrZero) ?? []
  const prices = listed?.prices
  for (const key of Object.keys(tokens)) {
    const isTaken = prices !== undefined && !listed?.leftOut.includes(key)
    for (const [section, own] of [
      ['litellm_params', params],
      ['model_info', info],
    ] as const)
      if (key in own)
        made.note(
          `${path}.${section}.${key}`,
          isTaken ? 'carried' : 'left',
          isTaken ? 'prices, times 1,000,000' : 'prices have no place for it',
        )
  }
  return prices
}

/** Whether an operator wrote this price. Other than in a published price file, 0 says that the tokens are free. */
function isPriceOrZero(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function withCalls(prices: ImportPrices, calls: Readonly<Record<string, string>>): ImportPrices {
  const add = (row: PriceTexts): PriceTexts => ({ ...row, calls })
  return Array.isArray(prices) ? prices.map(add) : add(prices as PriceTexts)
}

/** Whether the prices include calls of the provider's tools. */
export function hasCallPrices(prices: ImportPrices): boolean {
  return [prices].flat().some(({ calls }) => calls !== undefined)
}

/** Returns the number by which prices are compared: input plus output now, in credits per million tokens. */
export function costOf(prices: ImportPrices): number {
  const { input, output } = rowNow({ texts: prices })
  return Number(output) + Number(input)
}

/** Returns the highest prices, compared by `costOf`. Undefined if no deployment has prices. */
export function dearestOf(priced: readonly { figures: ImportFigures }[]): ImportPrices | undefined {
  return priced
    .flatMap(({ figures }) => (figures.prices ? [figures.prices] : []))
    .reduce<ImportPrices | undefined>((most, one) => (most && costOf(most) >= costOf(one) ? most : one), undefined)
}

const allModels = Object.values(builtInPresets.presets).flatMap(({ models }) => models)
