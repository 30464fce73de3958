import type { ModelWire } from './wire-names.ts'

/**
 * The entries that `triwire catalog add` writes: providers, and models of theirs with figures that can be looked up. One credit
 * stands for one US dollar.
 *
 * Each price has a day on which its source was read, and the source. A price without a dated source is not here. The operator
 * prices a model without `prices`. If a price depends on the time of day, the dearer one stands here. `triwire catalog import` reads
 * newer ones from a file.
 */
export type Preset = {
  /** The provider's address, and the variable that holds its key. */
  upstream: { baseUrl: string; keyVariable: string; paths?: Readonly<Partial<Record<ModelWire, string>>> }
  /** The wire of its models, and their profiles: another one for those that reason or take no sampling settings, if it differs. */
  wire: ModelWire
  profile: string
  reasoningProfile?: string
  fixedSamplingProfile?: string
  /** The provider's names in price files of others. */
  listedAs: readonly string[]
  /** Credits for a call of each hosted tool, with the source. Without it, `hosted_tools: refuse` is written. */
  calls?: { texts: Readonly<Record<string, string>>; source: string }
  models: readonly PresetModel[]
}

export type PresetModel = {
  id: string
  maxOutputTokens: number
  contextWindow: number
  /** Default: the preset's. */
  profile?: string
  prices?: DatedPrices
}

/** Credits per million tokens, as decimal strings, in the words of the configuration. */
export type RateTexts = {
  input: string
  output: string
  cache_read?: string
  cache_write?: string
  cache_write_1h?: string
  cache_write_12h?: string
}

export type PriceTexts = RateTexts & { steps?: readonly StepTexts[]; calls?: Readonly<Record<string, string>> }
export type StepTexts = { above: number } & RateTexts

export type DatedPrices = {
  /** The day it was read, and where the provider says it. */
  asOf: string
  source: string
  /** A note for the person who adds it. */
  note?: string
  texts: PriceTexts
}

/** Makes the prices of several models that one page has, as it was read on a day. */
const pricesOf = (source: string, asOf: string, note?: string) => (texts: PriceTexts) => ({
  ...{ asOf, source, texts },
  ...(note !== undefined && { note }),
})

const anthropicPrices = pricesOf('https://platform.claude.com/docs/en/about-claude/pricing', '2026-10-24')
const deepseekPrices = pricesOf(
  'https://api-docs.deepseek.com/quick_start/pricing',
  '2026-10-16',
  'the price of peak hours; the provider takes half of it at other times',
)

const claude = { profile: 'anthropic-fixed-sampling', maxOutputTokens: 128_000, contextWindow: 1_000_000 }
const gpt = { profile: 'openai-reasoning', maxOutputTokens: 128_000, contextWindow: 1_050_000 }
const deepseek = { maxOutputTokens: 384_000, contextWindow: 1_000_000 }

export const presets: Readonly<Record<string, Preset>> = {
  anthropic: {
    upstream: { baseUrl: 'https://api.anthropic.com', keyVariable: 'ANTHROPIC_API_KEY' },
    wire: 'messages',
    profile: 'anthropic',
    fixedSamplingProfile: 'anthropic-fixed-sampling',
    listedAs: ['anthropic'],
    // Its fetches of pages cost tokens alone.
    calls: {
      texts: { web_search: '0.01' },
      source: 'https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool',
    },
    models: [
      {
        id: 'claude-opus-5-5',
        ...claude,
        prices: anthropicPrices({ input: '4', cache_read: '0.2', cache_write: '5', cache_write_1h: '8', output: '20' }),
      },
      {
        id: 'claude-sonnet-5-5',
        ...claude,
        prices: anthropicPrices({
          input: '2',
          cache_read: '0.1',
          cache_write: '2.5',
          cache_write_1h: '4',
          output: '10',
        }),
      },
      {
        id: 'claude-haiku-5-5',
        ...claude,
        prices: anthropicPrices({
          input: '0.1',
          cache_read: '0.01',
          cache_write: '0.125',
          cache_write_1h: '0.2',
          output: '0.5',
          steps: [
            {
              above: 100_000,
              input: '0.5',
              cache_read: '0.05',
              cache_write: '0.625',
              cache_write_1h: '1',
              output: '2.5',
            },
          ],
        }),
      },
      {
        id: 'claude-opus-5',
        ...claude,
        prices: anthropicPrices({
          input: '5',
          cache_read: '0.5',
          cache_write: '6.25',
          cache_write_1h: '10',
          output: '25',
        }),
      },
    ],
  },
  openai: {
    upstream: { baseUrl: 'https://api.openai.com', keyVariable: 'OPENAI_API_KEY' },
    wire: 'responses',
    profile: 'openai',
    reasoningProfile: 'openai-reasoning',
    listedAs: ['openai'],
    // A call of the interpreter may start a container, and has the price of the smallest.
    calls: {
      texts: { web_search: '0.01', file_search: '0.0025', code_interpreter: '0.03' },
      source: 'https://developers.openai.com/api/docs/pricing',
    },
    models: [
      {
        id: 'gpt-6.2-sol',
        ...gpt,
        prices: {
          asOf: '2026-11-18',
          source: 'https://developers.openai.com/api/docs/models/gpt-6.2-sol',
          texts: {
            input: '2',
            cache_read: '0.1',
            cache_write: '2.5',
            cache_write_12h: '5',
            output: '10',
            steps: [
              { above: 272_000, input: '4', cache_read: '0.2', cache_write: '5', cache_write_12h: '10', output: '15' },
            ],
          },
        },
      },
      {
        id: 'gpt-6-luna',
        ...gpt,
        prices: {
          asOf: '2026-09-23',
          source: 'https://developers.openai.com/api/docs/models/gpt-6-luna',
          texts: {
            input: '0.1',
            cache_read: '0.01',
            cache_write: '0.125',
            cache_write_12h: '0.25',
            output: '0.5',
            steps: [
              {
                above: 272_000,
                input: '0.2',
                cache_read: '0.02',
                cache_write: '0.25',
                cache_write_12h: '0.5',
                output: '0.75',
              },
            ],
          },
        },
      },
      // Only its input and output were found with a day.
      { id: 'gpt-6.2-astra', ...gpt },
    ],
  },
  gemini: {
    upstream: {
      baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
      keyVariable: 'GEMINI_API_KEY',
    },
    wire: 'chat',
    profile: 'gemini',
    listedAs: ['gemini', 'google'],
    models: [
      {
        id: 'gemini-3.8-flash',
        profile: 'gemini-3',
        maxOutputTokens: 65_536,
        contextWindow: 1_048_576,
        prices: {
          asOf: '2026-10-07',
          source: 'https://ai.google.dev/gemini-api/docs/pricing',
          note: 'until 2026-12-31; from then on the provider takes twice as much',
          texts: { input: '0.75', cache_read: '0.075', output: '3.75' },
        },
      },
    ],
  },
  deepseek: {
    upstream: { baseUrl: 'https://api.deepseek.com', keyVariable: 'DEEPSEEK_API_KEY' },
    wire: 'chat',
    profile: 'deepseek',
    listedAs: ['deepseek'],
    models: [
      {
        id: 'deepseek-flash',
        ...deepseek,
        prices: deepseekPrices({ input: '0.3', cache_read: '0.006', output: '1.2' }),
      },
      {
        id: 'deepseek-v4-pro',
        ...deepseek,
        prices: deepseekPrices({ input: '1.32', cache_read: '0.044', output: '3.96' }),
      },
    ],
  },
  moonshot: {
    upstream: { baseUrl: 'https://api.moonshot.ai', keyVariable: 'MOONSHOT_API_KEY' },
    wire: 'chat',
    profile: 'moonshot',
    listedAs: ['moonshot', 'moonshotai'],
    models: [
      {
        id: 'kimi-k3',
        maxOutputTokens: 131_072,
        contextWindow: 1_048_576,
        prices: {
          asOf: '2026-07-18',
          source: 'https://platform.kimi.ai/docs/pricing/chat-k3',
          // A cache of an hour costs twice the input.
          texts: { input: '3', cache_read: '0.3', cache_write_1h: '6', output: '15' },
        },
      },
    ],
  },
  mistral: {
    upstream: { baseUrl: 'https://api.mistral.ai', keyVariable: 'MISTRAL_API_KEY' },
    wire: 'chat',
    profile: 'mistral',
    listedAs: ['mistral'],
    models: [],
  },
  xai: {
    upstream: { baseUrl: 'https://api.x.ai', keyVariable: 'XAI_API_KEY' },
    wire: 'chat',
    profile: 'xai',
    listedAs: ['xai'],
    models: [],
  },
}
