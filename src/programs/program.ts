import type { ClientWire, ModelWire } from '../catalog/wire-names.ts'
import type { Word } from './shells.ts'

export { keyVariable } from './shells.ts'

/** An agent, editor or SDK that can be set up for the gateway. docs/setup.md lists which settings are tested. */
export type Program = {
  /** The wires that it can use, the preferred one first. */
  wires: readonly ClientWire[]
  /** The context window that it assumes by default; undefined if it needs none. */
  assumes?: string
  /** A text that the installed program must provide before its files are written, and sentences in case it does not. */
  asks?: { hear(): Promise<string | undefined>; otherwise: string; ifPrinted: string }
  /** Its names for families of models, the one for its main work first. */
  families?: readonly string[]
  /** Set if it has a second model for titles and other small work, with its name for that family if it has one. */
  small?: { family?: string }
  /** Set if the program signs in at a gateway of a private network on its own (ruling Y19). */
  signsIn?: true
  /** Set if the program runs a command to get a token, and again after a 401. */
  runsTokenCommand?: true
  settings(access: Access, wire: ClientWire): Settings
}

/** The figures of a model; undefined if they are not known. */
export type Figures = {
  /** The most tokens of input and output together. */
  contextWindow: number | undefined
  outputTokensMax: number | undefined
}

/** A model that a program can use. */
export type OfferedModel = Figures & {
  model: string
  /**
   * The wire on which the model calls tools that its provider runs; undefined if it does not, or if that is not known.
   */
  hostedToolsWire?: ModelWire | undefined
}

/**
 * The address, the key and the model for a program, with the model's figures.
 * @property origin without `/v1`. Some programs add it themselves and others do not, which users often get wrong
 * @property small the model for titles and other small work; the same model if none was named
 * @property models all models that clients can name, for the pickers of programs; the first is the chosen one
 * @property session a word that no other user has
 * @property told the text that the program itself provided
 * @property tokenCommand runs instead of a key, for a program with `runsTokenCommand`
 * @property isSignIn the program signs in on its own and gets no key, if it has `signsIn`
 */
export type Access = Figures & {
  origin: string
  key: string
  model: string
  small: OfferedModel
  models: readonly OfferedModel[]
  session: string
  told?: string | undefined
  tokenCommand?: readonly string[] | undefined
  isSignIn?: boolean
}

/** Returns how many tokens are left for input besides the longest answer. */
export function promptOf({ contextWindow, outputTokensMax = 0 }: Figures): number | undefined {
  if (contextWindow === undefined) return undefined
  return contextWindow > outputTokensMax ? contextWindow - outputTokensMax : contextWindow
}

/**
 * The header that names the conversation (spec 4.1). Without a name, a model of the messages wire is not asked to cache
 * (ruling T5), and a long conversation costs three times as much.
 *
 * An agent that sends no name gets one word for each user, which is enough because the text decides what is cached. One
 * word for all users would send all of them to the same account of a pool.
 */
export function sessionHeader(program: string, { session }: Access): { 'x-session-id': string } {
  return { 'x-session-id': `${program}-${session}` }
}

/** The settings of an agent or SDK, in the formats that it reads. */
export type Settings = {
  /** Its settings files. The first one is the best known. */
  files?: readonly SettingsFile[]
  /** Variables of the shell; undefined ones are skipped. */
  env?: Readonly<Record<string, string | undefined>>
  /** The commands that start it, one after the other. */
  commands?: readonly (readonly Word[])[]
  /** A source text that uses it. */
  code?: { language: 'javascript' | 'python'; text: string }
  /** The steps for a person in its user interface, if it reads no file. */
  steps?: readonly string[]
}

/** A settings file of the program. It contains no key if the program can read the key elsewhere. */
export type SettingsFile = {
  /** The path of the file. `~/` stands for the home folder. */
  path: string
  /** Other paths of the same settings, which the program also reads. If such a file exists, it is edited instead. */
  elsewhere?: readonly string[]
  /** The text of a new file. */
  text: string
  /** `json` and `toml` files may contain settings of the user, which are kept. An `own` file is replaced. */
  format: 'json' | 'toml' | 'own'
  /** Lists by their path (`a.b`, empty for the whole file), with the key that identifies their entries. */
  lists?: Readonly<Record<string, string>>
  /** Paths of settings that an earlier setup may have written. They are removed unless `text` has them. */
  without?: readonly (readonly string[])[]
}

/** The window for programs that require one, if it is not known. Nearly all models have at least this. */
export const contextTokens = 128_000

/** The output limit for the same programs. */
export const outputTokens = 8_192

/** Writes a JSON file. Undefined members are omitted. */
export function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/** Writes a number of tokens as the value of a variable, if it is known. */
export function tokensText(tokens: number | undefined): string | undefined {
  return tokens === undefined ? undefined : String(tokens)
}
