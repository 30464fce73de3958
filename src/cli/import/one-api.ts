import type { Command } from 'commander'
import { type ImportedSetting, listText } from './import-report.ts'
import { type PricingOptions, pricingOf } from './litellm.ts'
import { convertLitellm } from './litellm-config.ts'
import { type ImportedChannel, modelListOf, type OneApiDialect, planOneApiKeys } from './one-api-config.ts'
import { readOneApi } from './one-api-tables.ts'
import { refuseToReplace, type WriteOptions, writeImport } from './write-import.ts'

type ImportOneApiOptions = WriteOptions & PricingOptions

/**
 * Runs `import one-api` and `import new-api`. Channels become models and upstreams, users become accounts, and tokens
 * become keys.
 * @throws Error if the tables cannot be read, or if no model can be carried over
 */
export async function importOneApi(
  dialect: OneApiDialect,
  file: string,
  options: ImportOneApiOptions,
  command: Command,
): Promise<void> {
  refuseToReplace(options)
  const tables = readOneApi(file)
  const { source, channelOf, settings } = modelListOf(tables, dialect)
  const converted = convertLitellm(source, { ...pricingOf(options), unpriced, lookedUpNote })
  const report = [...settings, ...channelsOf(converted.settings, channelOf, source.model_list)]
  if (!('catalog' in converted.config))
    throw new Error(`no channel of ${file} can be carried:\n${listText('channels', report, [])}`)
  const plan = planOneApiKeys(tables, { dialect, nowMs: Date.now() })
  const made = { from: file, gateway: dialect, command: dialect, config: converted.config }
  const hasKeys = plan.foreign.keys.length > 0
  await writeImport(
    {
      ...made,
      report: { settings: hasKeys ? report : [...report, ...plan.settings], notes: converted.notes },
      plan: hasKeys ? plan : undefined,
    },
    options,
    command,
  )
}

const unpriced =
  'no price is known: set both ModelRatio and CompletionRatio of the model in the options, or name a price file with --prices'
const lookedUpNote =
  'the options lack its ModelRatio or CompletionRatio, so its price is that of a preset or of --prices.'

/**
 * Reports the models of channels, and once the weight of each channel whose weight was left out. Other settings are of
 * our temporary `model_list`, which no operator wrote.
 */
function channelsOf(
  settings: readonly ImportedSetting[],
  channelOf: readonly ImportedChannel[],
  entries: readonly object[],
): ImportedSetting[] {
  const report = new Map<string, ImportedSetting>()
  const leftModels = new Set(settings.flatMap(({ setting, fate }) => (fate === 'left' ? setting : [])))
  for (const { setting: path, fate, why } of settings) {
    const [, at, field] = /^model_list\[(\d+)\]\.(model_name|litellm_params\.weight)$/.exec(path) ?? []
    if (at === undefined) continue
    const { name, isWeighed } = channelOf[Number(at)]!
    const isModel = field === 'model_name'
    const isWeightLeft = isWeighed && fate === 'left' && !leftModels.has(`model_list[${at}].model_name`)
    if (!isModel && !isWeightLeft) continue
    const { model_name: model } = entries[Number(at)] as { model_name: string }
    const setting = isModel ? `${name}, model ${model}` : `${name}, its weight`
    report.set(isModel ? path : setting, { setting, fate, why })
  }
  return [...report.values()]
}
