import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { parse } from 'yaml'
import { asObject } from '../../bytes/json.ts'
import { readListed } from '../catalog/price-files.ts'
import { today } from '../catalog/propose.ts'
import { readText } from '../print.ts'
import { listText } from './import-report.ts'
import { convertLitellm } from './litellm-config.ts'
import { readLitellmDump } from './litellm-dump.ts'
import { type KeysOptions, type KeysPlan, planLitellmKeys } from './litellm-keys.ts'
import { refuseToReplace, type WriteOptions, writeImport } from './write-import.ts'

export type PricingOptions = { prices?: string; unpricedFree?: true }

type ImportLitellmOptions = WriteOptions &
  PricingOptions & {
    keys: readonly string[]
    account: string
    teams?: 'accounts' | 'labels'
    credit?: bigint
  }

/**
 * Runs `import litellm`, which reads LiteLLM's configuration, prints or writes ours, and lists what happened to each
 * setting, without values. Keys of a dump are imported into the store in one transaction.
 * @throws Error if a file cannot be read or written, or if no model can be carried over
 */
export async function importLitellm(file: string, options: ImportLitellmOptions, command: Command): Promise<void> {
  refuseToReplace(options)
  const { config, settings, notes, groups, aliases } = convert(file, pricingOf(options))
  const list = listText('settings', settings, notes)
  if (!('catalog' in config)) throw new Error(`no model of ${file} can be carried:\n${list}`)
  const plan = options.keys.length > 0 ? planKeys(options, { groups, aliases }) : undefined
  await writeImport(
    {
      ...{ from: file, gateway: 'LiteLLM', command: 'litellm' },
      config: { ...config, ...(plan && Object.keys(plan.labels).length > 0 && { labels: plan.labels }) },
      report: { settings, notes },
      plan,
    },
    options,
    command,
  )
}

/** Reads the named price file of LiteLLM or models.dev, if there is one. @throws Error with a message for people */
export function pricingOf({ prices, unpricedFree }: PricingOptions): Parameters<typeof convertLitellm>[1] {
  const listed = prices === undefined ? undefined : readListed(prices)
  return { today: today(), ...(listed && { listed }), isUnpricedFree: unpricedFree === true }
}

function planKeys(
  { keys, account, teams, credit }: ImportLitellmOptions,
  names: Pick<KeysOptions, 'groups' | 'aliases'>,
): KeysPlan {
  const texts = keys.map((file) => readText(file, 'name the answers of /key/list and /team/list'))
  try {
    return planLitellmKeys(readLitellmDump(texts), {
      ...{ account, teams, creditNanos: credit, ...names, nowMs: Date.now() },
    })
  } catch (error) {
    throw new Error(`${keys.join(', ')}: ${(error as Error).message}`)
  }
}

function convert(file: string, options: Parameters<typeof convertLitellm>[1]) {
  const value = withIncluded(file, readYaml(file, "name LiteLLM's configuration"))
  try {
    return convertLitellm(value, options)
  } catch (error) {
    throw new Error(`${file} is no configuration of LiteLLM's: ${(error as Error).message}`)
  }
}

function readYaml(file: string, cure: string): unknown {
  try {
    return parse(readText(file, cure), { merge: true, logLevel: 'error' })
  } catch (error) {
    // The parser's message would quote lines of the file, which may contain keys.
    if ((error as Error).name === 'YAMLParseError') throw new Error(`${file} is not valid YAML: ${cure}`)
    throw error
  }
}

/**
 * Adds the settings of files that `include` names (litellm 1.110, `resolve_includes`). As in LiteLLM, lists are joined,
 * and other values replace earlier ones. Each file is read once.
 */
function withIncluded(file: string, value: unknown, seen = new Set([resolve(file)])): unknown {
  const source = asObject(value)
  const names = source?.['include']
  if (!source || !Array.isArray(names)) return value
  const whole = { ...source }
  for (const name of names) {
    const path = resolve(dirname(file), `${name}`)
    if (seen.has(path)) continue
    seen.add(path)
    const included = withIncluded(path, readYaml(path, `the include of ${file} names it`), seen)
    for (const [key, part] of Object.entries(asObject(included) ?? {})) {
      if (key === 'include') continue
      const there = whole[key]
      whole[key] = Array.isArray(there) && Array.isArray(part) ? [...there, ...part] : part
    }
  }
  return whole
}
