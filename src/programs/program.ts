import type { ClientWire, ModelWire } from '../catalog/wire-names.ts'
import type { Word } from './shells.ts'

export { keyVariable } from './shells.ts'

/** An agent, editor or SDK that can be set up for the gateway. docs/setup.md says which settings were tested. */
export type Program = {
  /** The wires (API dialects) that the program can use, the preferred one first. */
  wires: readonly ClientWire[]
  /** The context window that the program assumes by default, as a text. Undefined if the program needs no window. */
  assumes?: string
  /**
   * Set if the setup needs a text that only the program knows. `hear` asks the program before the files are written. If
   * the program gives no text, the user reads `otherwise`. If the files are only printed, the user reads `ifPrinted`.
   */
  asks?: { hear(): Promise<string | undefined>; otherwise: string; ifPrinted: string }
  /** The names of model families from which the model for the main work is chosen, the preferred family first. */
  families?: readonly string[]
  /** Set if the program has a smaller model for titles and other small work. `family` names that model's family. */
  small?: { family?: string }
  /** Set if the program itself can sign in at a gateway that has a private address (ruling Y19). */
  signsIn?: true
  /** Set if the program runs a command to get a token, and again after a 401. */
  runsTokenCommand?: true
  settings(access: Access, wire: ClientWire): Settings
}

/** The figures of a model. A figure is undefined if it is not known. */
export type Figures = {
  /** The most tokens of input and output together. */
  contextWindow: number | undefined
  outputTokensMax: number | undefined
}

/** A model that a program can use. */
export type OfferedModel = Figures & {
  model: string
  /** The wire on which the model calls tools that its provider runs. Undefined if there is none, or it is unknown. */
  hostedToolsWire?: ModelWire | undefined
}

/**
 * The address, the key and the model for a program, with the model's figures.
 * @property origin the gateway's address without `/v1`. Some programs add `/v1` themselves, which users often get wrong
 * @property small the model for titles and other small work; the main model if no other was named
 * @property models all models that clients can name, for the pickers of programs; the first is the chosen one
 * @property session a random word that differs for each user
 * @property told the answer of the program to the setup's question (`asks`)
 * @property tokenCommand a command that prints a token, instead of a key, for a program with `runsTokenCommand`
 * @property isSignIn true if a program with `signsIn` signs in on its own and gets no key
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

/** Returns how many tokens the context window leaves for input if the answer is as long as possible. */
export function promptOf({ contextWindow, outputTokensMax = 0 }: Figures): number | undefined {
  if (contextWindow === undefined) return undefined
  return contextWindow > outputTokensMax ? contextWindow - outputTokensMax : contextWindow
}

/**
 * The header that names the conversation (spec 4.1). Without a name, a model of the messages wire is not asked to cache
 * (ruling T5). A long conversation then costs three times as much.
 *
 * An agent that cannot name its conversations gets one name for each user. That suffices, because a provider finds its
 * cache by the text of a request. With one name for all users, all requests would go to the same upstream account.
 */
export function sessionHeader(program: string, { session }: Access): { 'x-session-id': string } {
  return { 'x-session-id': `${program}-${session}` }
}

/** The settings of an agent or SDK, in the formats that it reads. */
export type Settings = {
  /** The program's settings files. The first is the file that users know best. */
  files?: readonly SettingsFile[]
  /** Variables of the shell; undefined ones are skipped. */
  env?: Readonly<Record<string, string | undefined>>
  /** The commands that start the program, one after the other. */
  commands?: readonly (readonly Word[])[]
  /** A source text that uses the SDK. */
  code?: { language: 'javascript' | 'python'; text: string }
  /** The steps for a person in the program's user interface, if it reads no file. */
  steps?: readonly string[]
}

/** A settings file of the program. It contains no key if the program can read the key elsewhere. */
export type SettingsFile = {
  /** The path of the file. `~/` stands for the home folder. */
  path: string
  /** Other paths at which the program reads the same settings. If such a file exists, it is edited instead. */
  elsewhere?: readonly string[]
  /** The text of a new file. */
  text: string
  /** In `json` and `toml` files, settings of the user are kept. An `own` file has only our settings and is replaced. */
  format: 'json' | 'toml' | 'own'
  /**
   * For each list in the settings: the member by which the entries of the list are identified. The keys are paths of
   * lists, such as `a.b`. An empty path stands for the whole file.
   */
  lists?: Readonly<Record<string, string>>
  /** Paths of settings that an earlier setup may have written. These settings are removed, unless `text` has them. */
  without?: readonly (readonly string[])[]
}

/**
 * The context window for a model whose window is unknown, given to programs that require a window. Nearly all models
 * accept that many tokens.
 */
export const contextTokens = 128_000

/** The output limit that a program gets for a model whose limit is unknown, if it requires one. */
export const outputTokens = 8_192

/** Writes a JSON file. Undefined members are omitted. */
export function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/** Writes a number of tokens as the value of a variable, if it is known. */
export function tokensText(tokens: number | undefined): string | undefined {
  return tokens === undefined ? undefined : String(tokens)
}
