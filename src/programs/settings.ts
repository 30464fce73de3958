import type { Word } from './shells.ts'

/** The settings of an agent or SDK, in the forms that it reads. */
export type Settings = {
  /** Its settings files. The first one is the best known. */
  files?: readonly SettingsFile[]
  /** Variables of the shell; undefined ones are left out. */
  env?: Readonly<Record<string, string | undefined>>
  /** The commands that start it, one after the other. */
  commands?: readonly (readonly Word[])[]
  /** A source text that uses it. */
  code?: string
  /** The steps for a person in its user interface, if it reads no file. */
  steps?: readonly string[]
}

/** A settings file of the program. It contains no key if the program can read the key elsewhere. */
export type SettingsFile = {
  /** `~/` is the home folder. */
  path: string
  /** Other paths of the same settings, which the program reads too. An existing one is edited. */
  elsewhere?: readonly string[]
  /** The text of a new file. */
  text: string
  /** `json` and `toml` files may have settings of the user, which stay. An `own` file is ours alone, and is replaced. */
  format: 'json' | 'toml' | 'own'
  /** Lists by their path (`a.b`, empty for the whole file), with the key that identifies their entries. */
  lists?: Readonly<Record<string, string>>
  /** Paths of settings that an earlier setup may have written. They are removed unless `text` has them. */
  without?: readonly (readonly string[])[]
}

export { keyVariable } from './shells.ts'

/** The window for programs that cannot do without one, if it is not known. Nearly all models have as much. */
export const contextTokens = 128_000

/** The output limit for the same programs. */
export const outputTokens = 8_192

/** Writes a JSON file. Undefined members are left out. */
export function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/** Writes a number of tokens as the value of a variable, if it is known. */
export function tokensText(tokens: number | undefined): string | undefined {
  return tokens === undefined ? undefined : String(tokens)
}
