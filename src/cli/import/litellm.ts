import { existsSync, readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { parse, stringify } from 'yaml'
import { findProblems } from '../../config/load.ts'
import { writeWhole } from '../../host/whole-file.ts'
import { readPriceFile } from '../catalog/price-files.ts'
import { today } from '../catalog/propose.ts'
import { isJson, print, unreadable } from '../print.ts'
import { convertLitellm, type ImportedSetting } from './litellm-config.ts'

type ImportLitellmOptions = { output?: string; force?: true; prices?: string; unpricedFree?: true }

/**
 * Runs `import litellm`: reads LiteLLM's configuration, prints or writes ours, and lists what became of each setting. The list
 * names settings only, never their values.
 * @throws Error if a file cannot be read or written, or if no model can be carried
 */
export function importLitellm(file: string, options: ImportLitellmOptions, command: Command): void {
  const { output, force, prices, unpricedFree } = options
  if (output !== undefined && !force && existsSync(output))
    throw new Error(`${output} is there already: name another file, or add --force to replace it`)
  const listed = prices === undefined ? undefined : readPriceFile(readJson(prices))
  if (prices !== undefined && listed === undefined)
    throw new Error(
      `${prices} is neither LiteLLM's price file (model_prices_and_context_window.json) nor models.dev's (api.json)`,
    )
  const { config, settings, notes } = convert(file, {
    today: today(),
    ...(listed && { listed }),
    isUnpricedFree: unpricedFree === true,
  })
  const list = listText(settings, notes)
  if (!('catalog' in config)) throw new Error(`no model of ${file} can be carried:\n${list}`)
  const text = `# Made from LiteLLM's configuration by triwire import litellm.\n${stringify(config, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0, aliasDuplicateObjects: false })}`
  const problems = findProblems(output ?? 'triwire.yaml', text, withStandIns(text, process.env))
  if (problems.length > 0)
    throw new Error(
      `${file} would become a configuration with mistakes, and nothing was written:\n${problems.map(({ message }) => message).join('\n')}`,
    )
  if (output !== undefined) write(output, text)
  const data = { file: output ?? null, settings, notes, ...(output === undefined && { config: text }) }
  if (output === undefined && !isJson(command)) console.error(list)
  print(command, data, () =>
    output === undefined ? text.trimEnd() : `${list}\nWrote ${output}: triwire check tells what else it needs.`,
  )
}

function convert(file: string, options: Parameters<typeof convertLitellm>[1]) {
  let value: unknown
  try {
    value = parse(readFileSync(file, 'utf8'), { merge: true, logLevel: 'error' })
  } catch (error) {
    // The message of the parser would quote lines, in which keys may be.
    if ((error as Error).name === 'YAMLParseError')
      throw new Error(`${file} is not valid YAML: name LiteLLM's configuration`)
    throw unreadable(file, error, "name LiteLLM's configuration")
  }
  try {
    return convertLitellm(value, options)
  } catch (error) {
    throw new Error(`${file} is no configuration of LiteLLM's: ${(error as Error).message}`)
  }
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error(`${file} is not JSON: name LiteLLM's or models.dev's price file`)
    throw unreadable(file, error, "name LiteLLM's or models.dev's price file")
  }
}

function write(file: string, text: string): void {
  try {
    writeWhole(file, text)
  } catch (error) {
    throw new Error(`Cannot write ${file} (${(error as NodeJS.ErrnoException).code}): name another one with --output`)
  }
}

/** Lists what is not carried, with the reasons, and counts the rest. */
function listText(settings: readonly ImportedSetting[], notes: readonly string[]): string {
  const of = (fate: ImportedSetting['fate']) => settings.filter((one) => one.fate === fate)
  const [carried, replaced, left] = [of('carried'), of('replaced'), of('left')]
  const lines = (some: readonly ImportedSetting[]) => some.map(({ setting, why }) => `  ${visible(setting)}: ${why}`)
  return [
    `${settings.length} settings: ${carried.length} carried, ${replaced.length} replaced, ${left.length} not carried.`,
    ...(replaced.length > 0 ? ['Replaced, triwire does it in its own way:', ...lines(replaced)] : []),
    ...(left.length > 0 ? ['Not carried:', ...lines(left)] : []),
    ...(notes.length > 0 ? ['Assumed, look at it:', ...notes.map((one) => `  ${visible(one)}`)] : []),
  ].join('\n')
}

function visible(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?').slice(0, 200)
}

/** Values of settings whose form is checked, for variables that are not set here: the server may have them. */
const standIns = {
  base_url: 'https://unset.example',
  region: 'us-east-1',
  role: 'arn:aws:iam::123456789012:role/unset',
}

/** Adds stand-ins for unset variables that such a setting begins with, where any other word would be a mistake. */
export function withStandIns(text: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const named = Object.entries(standIns).flatMap(([key, value]) =>
    [...text.matchAll(new RegExp(`\\b${key}: "\\$\\{(\\w+)`, 'g'))].map(([, name]) => [name!, value]),
  )
  return { ...Object.fromEntries(named), ...env }
}
