import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import {
  builtInPresets,
  type DatedPrices,
  type Preset,
  type PresetModel,
  type PresetsFile,
} from '../../catalog/presets.ts'
import { profileNames } from '../../catalog/profiles.ts'
import { modelWireNames } from '../../catalog/wire-names.ts'
import type { Config } from '../../config/config.ts'
import { rowsOf } from '../../config/price-list.ts'
import { calendars, prices } from '../../config/price-schema.ts'

/** The name of the file with newer presets, in the folder of the configuration. */
const fileName = 'triwire.presets.json'

export function presetsPath(configFile: string): string {
  return join(dirname(configFile), fileName)
}

/**
 * Returns the presets beside a configuration file, or else the built-in presets. @throws Error if the file is invalid
 */
export function presetsBeside(configFile: string | undefined): PresetsFile {
  const path = configFile === undefined ? undefined : presetsPath(configFile)
  return path !== undefined && existsSync(path) ? readPresetsFile(path) : builtInPresets
}

const day = z.string().regex(/^\d{4}-\d\d-\d\d$/)
const count = z.int().positive()
const profile = z.enum(profileNames)

const model = z.strictObject({
  id: z.string().min(1),
  maxOutputTokens: count,
  contextWindow: count,
  profile: profile.optional(),
  prices: z
    .strictObject({ asOf: day, source: z.string().startsWith('https://'), note: z.string().optional(), texts: prices })
    .optional(),
})

const schema = z.strictObject({
  version: z.literal(1),
  about: z.string().optional(),
  calendars,
  presets: z.record(
    z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/),
    z.strictObject({
      upstream: z.strictObject({
        baseUrl: z.url({ protocol: /^https$/ }),
        keyVariable: z.string().regex(/^[A-Z][A-Z0-9_]*$/),
        keyHeader: z.string().optional(),
        headers: z.record(z.string(), z.string()).optional(),
        paths: z
          .partialRecord(
            z.enum(modelWireNames),
            z.union([z.string(), z.strictObject({ whole: z.string(), stream: z.string() })]),
          )
          .optional(),
        account: z.partialRecord(z.enum(['aws', 'google', 'azure']), z.strictObject({})).optional(),
      }),
      ofCloud: z.literal(true).optional(),
      wire: z.enum(modelWireNames),
      profile,
      reasoningProfile: profile.optional(),
      fixedSamplingProfile: profile.optional(),
      listedAs: z.array(z.string()),
      calls: z.strictObject({ texts: z.record(z.string(), z.string()), source: z.string() }).optional(),
      models: z.array(model),
    }),
  ),
})

/** Reads a file of presets. @throws Error with the place of the first mistake */
export function readPresetsFile(path: string): PresetsFile {
  let value: unknown
  let isVisible = true
  const look = (name: string, one: unknown) => {
    isVisible &&= [name, one].every((text) => typeof text !== 'string' || !/[\p{C}\p{Zl}\p{Zp}]/u.test(text))
    return one
  }
  try {
    value = JSON.parse(readFileSync(path, 'utf8').replace(/^\ufeff/, ''), look)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Error(code ? `Cannot read ${path} (${code})` : `${path} is not JSON: name a data file of presets`)
  }
  // Line breaks and invisible characters could inject lines into a configuration or a terminal.
  if (!isVisible)
    throw new Error(`${path} is no data file of presets: it has line ends or invisible characters in a text`)
  const { error } = schema.safeParse(value)
  const issue = error?.issues[0]
  if (issue)
    throw new Error(`${path} is no data file of presets: ${issue.path.join('.') || 'the file'}: ${issue.message}`)
  const file = value as PresetsFile
  // `${NAME}` in an id would publish the variable's value, perhaps a key, because clients can list the ids of models.
  if (JSON.stringify(Object.values(file.presets).map(({ models }) => models)).includes('${'))
    throw new Error(`${path} is no data file of presets: a model names a variable`)
  return file
}

/** Returns the newest day on which a price of the file was read. */
export function newestDay({ presets }: PresetsFile): string {
  const days = Object.values(presets).flatMap(({ models }) => models.flatMap(({ prices: dated }) => dated?.asOf ?? []))
  return days.sort().at(-1) ?? 'no day'
}

const dayMs = 86_400_000
const oldMs = 60 * dayMs
const noticeMs = 30 * dayMs

type PresetNote = { model: string; as_of: string; source: string; message: string }

/**
 * Reports models whose preset prices were read from the provider's page more than 60 days ago. Also reports new prices
 * that the provider has announced for the next 30 days, if the configuration lacks them.
 */
export function presetNotes({ catalog, upstreams }: Config, file: PresetsFile, nowMs: number): PresetNote[] {
  const hosts = new Map([...upstreams].map(([name, { baseUrl }]) => [name, new URL(baseUrl).host]))
  return catalog.entries.flatMap(({ id, routes, prices: list }) =>
    routes.flatMap(({ upstream, serving }): PresetNote[] => {
      const preset = presetAt(file, hosts.get(upstream), serving.upstreamModel)
      if (!preset?.prices) return []
      const { asOf, source, texts } = preset.prices
      const about = { model: id, as_of: asOf, source }
      const ageMs = nowMs - Date.parse(asOf)
      const froms = new Set(list.rows.map(({ fromMs }) => fromMs))
      const missing = rowsOf(texts).flatMap(({ row: { from, input, output } }) => {
        const ms = from === undefined ? Number.NaN : Date.parse(from)
        if (!(ms > nowMs && ms <= nowMs + noticeMs) || froms.has(ms)) return []
        const message = `its provider has announced input ${input} and output ${output} from ${from} on: add a row to \`prices\``
        return { ...about, message }
      })
      const message = `its price was read ${Math.floor(ageMs / dayMs)} days ago: compare it with the source, or bring newer presets by triwire catalog update`
      return [...(ageMs > oldMs ? [{ ...about, message }] : []), ...missing]
    }),
  )
}

function presetAt({ presets }: PresetsFile, host: string | undefined, id: string): PresetModel | undefined {
  const isAt = ({ upstream }: Preset) => host !== undefined && isHostOf(new URL(upstream.baseUrl).host, host)
  for (const preset of Object.values(presets)) {
    const found = isAt(preset) ? preset.models.find((one) => one.id === id) : undefined
    if (found) return found
  }
  return undefined
}

/** Whether a host is the host of a preset. @param own the preset's host, in which a variable stands for any text */
function isHostOf(own: string, host: string): boolean {
  const [begin, end] = own.split(/\$\{.*?\}/)
  return end === undefined ? host === own : host.startsWith(begin!) && host.endsWith(end)
}

/** Lists models that a newer file adds or removes, and models whose prices it changes. */
export function comparePresets(
  before: PresetsFile,
  after: PresetsFile,
): { added: string[]; removed: string[]; changed: string[] } {
  const [old, next] = [before, after].map(pricesByModel) as [Map<string, string>, Map<string, string>]
  return {
    added: [...next.keys()].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !next.has(name)),
    changed: [...next].flatMap(([name, text]) => (old.has(name) && old.get(name) !== text ? name : [])),
  }
}

function pricesByModel({ presets }: PresetsFile): Map<string, string> {
  const rows = Object.entries(presets).flatMap(([name, { models }]) =>
    models.map((one): [string, string] => [`${name} ${one.id}`, JSON.stringify(one.prices?.texts ?? null)]),
  )
  return new Map(rows)
}

/** Returns the names of the calendars that prices use. */
export function calendarsOf(texts: DatedPrices['texts']): string[] {
  return rowsOf(texts).flatMap(({ row: { bands = [] } }) => bands.flatMap(({ not_on: name }) => name ?? []))
}
