import { asObject } from '../../bytes/json.ts'
import type { ListedModel } from '../catalog/price-files.ts'
import type { ImportedSetting } from './import-report.ts'
import type { DeploymentWay } from './litellm-places.ts'

/** An object of LiteLLM's file, or of our configuration file. */
export type SourceFields = Record<string, unknown>

export type LitellmOptions = {
  /** The date for `catalog.pinned`. */
  today: string
  /** Models of a published price file, which supplies prices and limits that LiteLLM's file lacks. */
  listed?: readonly ListedModel[]
  /**
   * Whether a model without a known price costs nothing. If false, such a model is left out, unless it runs on the
   * operator's own server.
   */
  isUnpricedFree?: boolean
  /** The reported reason for leaving out a model without a price. Default: a text that names LiteLLM's settings. */
  unpriced?: string
  /** A note for each model whose price comes from a preset or from `listed`. Default: none. */
  lookedUpNote?: string
}

/** An entry of `model_list` that our gateway can reach. */
export type Deployment = {
  name: string
  path: string
  params: SourceFields
  info: SourceFields
  ways: readonly DeploymentWay[]
  provider: string | undefined
  /** The names under which presets and price files may list the model, the most specific name first. */
  figureNames: readonly string[]
}

/** The state of one conversion, which all its parts use. */
export class LitellmMaking {
  readonly source: SourceFields
  readonly options: LitellmOptions
  /** The fate of each setting (carried over, replaced or left out), by its path. */
  readonly report = new Map<string, ImportedSetting>()
  readonly upstreams = new Map<string, { name: string; entry: SourceFields }>()
  /** Names of the calendars that prices use. */
  readonly calendars = new Set<string>()
  /** Sentences about figures that were assumed. */
  readonly notes = new Set<string>()
  /** All names in `model_list`. A pattern such as `*` does not apply to a name that has an entry of its own. */
  readonly exactNames: ReadonlySet<unknown>

  constructor(source: SourceFields, options: LitellmOptions) {
    this.source = source
    this.options = options
    this.exactNames = new Set(objectsOf(source['model_list']).map((entry) => entry['model_name']))
  }

  /** Reports what happened to a setting. If the setting has a report already, that report stays. */
  note(setting: string, fate: ImportedSetting['fate'], why: string): void {
    if (!this.report.has(setting)) this.report.set(setting, { setting, fate, why })
  }

  /** Reports that a setting was left out. This replaces an earlier report about the setting. */
  overrule(setting: string, why: string): void {
    this.report.set(setting, { setting, fate: 'left', why })
  }

  /** Reports that all settings of a deployment were left out. @returns an empty list */
  leave(one: Pick<Deployment, 'path' | 'params' | 'info'>, why: string): [] {
    for (const { path } of settingsOf({}, one)) this.note(path, 'left', why)
    return []
  }
}

export const aliasPlaces = [
  ['router_settings', 'model_group_alias'],
  ['litellm_settings', 'model_alias_map'],
] as const

export type SettingPlace = { path: string; section: string; key: string }

/**
 * Lists the settings of a file. `section` and `key` find a setting in litellm-fates.ts.
 * @param one a model. If it is given, only the settings of this model are listed
 */
export function settingsOf(
  source: SourceFields,
  one?: { path: string; params: SourceFields; info: SourceFields },
): SettingPlace[] {
  if (one)
    return [
      { path: `${one.path}.model_name`, section: '', key: 'model_name' },
      ...Object.keys(one.params).map((key) => ({
        path: `${one.path}.litellm_params.${key}`,
        section: 'litellm_params',
        key,
      })),
      ...Object.keys(one.info).map((key) => ({ path: `${one.path}.model_info.${key}`, section: 'model_info', key })),
    ]
  return Object.entries(source).flatMap(([section, value]): SettingPlace[] => {
    if (section === 'model_list')
      return objectsOf(value).flatMap((entry, index) => {
        const path = `model_list[${index}]`
        const [params, info] = [asObject(entry['litellm_params']) ?? {}, asObject(entry['model_info']) ?? {}]
        const rest = Object.keys(entry).filter((key) => !['model_name', 'litellm_params', 'model_info'].includes(key))
        return [
          ...settingsOf(source, { path, params, info }),
          ...rest.map((key) => ({ path: `${path}.${key}`, section: 'litellm_params', key })),
        ]
      })
    if (section === 'credential_list')
      return objectsOf(value).map((_, at) => ({ path: `${section}[${at}]`, section: '', key: section }))
    const map = asObject(value)
    if (!map) return [{ path: section, section: '', key: section }]
    return Object.entries(map).flatMap(([key, inner]): SettingPlace[] => {
      const path = `${section}.${key}`
      if (/(^|_)fallbacks$/.test(key) && key !== 'default_fallbacks')
        return objectsOf(inner).flatMap((entry, at) =>
          Object.keys(entry).map((name) => ({ path: `${path}[${at}].${name}`, section, key })),
        )
      if (aliasPlaces.some(([of, name]) => of === section && name === key))
        return Object.keys(asObject(inner) ?? {}).map((alias) => ({ path: `${path}.${alias}`, section, key }))
      return [{ path, section, key }]
    })
  })
}

/** Returns the elements of a list. Elements that are not objects become empty objects. */
export function objectsOf(value: unknown): SourceFields[] {
  return Array.isArray(value) ? value.map((one) => asObject(one) ?? {}) : []
}

/** Converts a text to our form: `os.environ/NAME` becomes `${NAME}`, and a literal `${` is escaped. */
export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string')
    return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
  const [, name] = /^os\.environ\/([A-Za-z_]\w*)$/.exec(value) ?? []
  return name === undefined ? value.replaceAll('${', '$${') : `\${${name}}`
}

/** Returns a text, or a number as text. Anything else becomes an empty text. */
export function wordOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** Returns an integer above 0 that is given as a number or a text. Anything else gives undefined. */
export function countOf(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : undefined
}

/** Returns the name, or the first of `name-2`, `name-3`, … that is free. */
export function firstFree(name: string, taken: { has(name: string): boolean }): string {
  for (let at = 1; ; at += 1) {
    const one = at === 1 ? name : `${name}-${at}`
    if (!taken.has(one)) return one
  }
}

/** Whether a name is valid as an id of our catalog. */
export function isId(name: string): boolean {
  return /^[^*\p{Cc}\p{Cf}]{1,256}$/u.test(name)
}
