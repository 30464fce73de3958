import type { Tier } from './model.ts'
import data from './presets.json' with { type: 'json' }
import { rowInForce } from './price-list.ts'
import type { ModelWire } from './wire-names.ts'

/**
 * A provider that `triwire catalog add` can add to a catalog, and some of its models. Figures are in `presets.json`,
 * and one credit stands for one US dollar. Every price has a source and the day on which the source was read. The
 * operator sets the price of a model without `prices`.
 */
export type Preset = {
  /** The provider's address, and the variable that holds its key. */
  upstream: PresetUpstream
  /**
   * Set for a cloud that sells models of other companies. A model name without a provider, in an imported file of
   * another gateway, never selects such a preset.
   */
  ofCloud?: true
  /**
   * The wire and the profile of the preset's models. `reasoningProfile` is for models that reason.
   * `fixedSamplingProfile` is for models that sample with fixed settings.
   */
  wire: ModelWire
  profile: string
  reasoningProfile?: string
  fixedSamplingProfile?: string
  /** The names of the provider in price files of other projects. */
  listedAs: readonly string[]
  /**
   * The price of a call of each hosted tool, in credits, and the source of these prices. If undefined, `add` writes
   * `hosted_tools: refuse`.
   */
  calls?: { texts: Readonly<Record<string, string>>; source: string }
  models: readonly PresetModel[]
}

/** How to reach a provider. An address, a path and a header may contain a variable of the environment, as `${NAME}`. */
export type PresetUpstream = {
  baseUrl: string
  keyVariable: string
  /** The header that has the key. Default: the header that the wire uses. */
  keyHeader?: string
  headers?: Readonly<Record<string, string>>
  paths?: Readonly<Partial<Record<ModelWire, string | { whole: string; stream: string }>>>
  /** Settings of the account that replace a key, for example the credentials of a cloud. */
  account?: Readonly<Record<string, object>>
}

export type PresetModel = {
  id: string
  maxOutputTokens: number
  contextWindow: number
  /** Default: the preset's profile. */
  profile?: string
  prices?: DatedPrices
}

/** Credits per million tokens, as decimal strings. The members have the same names as in the configuration. */
export type RateTexts = {
  input: string
  output: string
  cache_read?: string
  cache_write?: string
  cache_write_1h?: string
  cache_write_12h?: string
}

export type WrittenTexts = RateTexts & { steps?: readonly StepTexts[] }
/** A row of prices, with the member names and decimal texts of the configuration file. */
export type PriceTexts = WrittenTexts & {
  from?: string
  calls?: Readonly<Record<string, string>>
  bands?: readonly BandTexts[]
  tiers?: Readonly<Partial<Record<Tier, string | WrittenTexts>>>
  geos?: Readonly<Record<string, string | WrittenTexts>>
}
export type BandTexts = {
  name: string
  zone?: string
  days?: string | readonly string[]
  hours?: readonly string[]
  not_on?: string
  times?: string
} & Partial<WrittenTexts>
export type StepTexts = { above: number } & RateTexts

export type DatedPrices = {
  /** The day on which the source was read. `source` is the provider's page. */
  asOf: string
  source: string
  /** A note for the person who adds the model. */
  note?: string
  /** A row of prices, or a list of rows by date. */
  texts: PriceTexts | readonly PriceTexts[]
}

/** The file of the presets. Prices in the presets name the calendars. */
export type PresetsFile = {
  version: 1
  /** A sentence about the origin of the figures. */
  about?: string
  calendars: Readonly<Record<string, CalendarTexts>>
  presets: Readonly<Record<string, Preset>>
}

/** A calendar, as the configuration writes it. On its days, bands (hours with other prices) do not begin. */
type CalendarTexts = { zone: string; through: string; days: readonly string[] }

/** The presets that come with the program. `triwire catalog update` puts a newer file beside a configuration. */
export const builtInPresets = data as unknown as PresetsFile

export const { presets } = builtInPresets

/** Returns the row of prices that applies now, to compare models. */
export function rowNow({ texts }: Pick<DatedPrices, 'texts'>, nowMs = Date.now()): PriceTexts {
  const rows = [texts].flat() as readonly PriceTexts[]
  return rowInForce(rows, nowMs, ({ from }) => (from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from)))
}
