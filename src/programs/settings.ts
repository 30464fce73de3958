import type { Word } from './shells.ts'

/** The settings of an agent or SDK, in the forms that it reads. */
export type Settings = {
  /** Files of its own; the first is what people know it by. */
  files?: readonly SettingsFile[]
  /** Variables of the shell. */
  env?: Readonly<Record<string, string>>
  /** How it is started then, one command after the other. */
  commands?: readonly (readonly Word[])[]
  /** A source text that uses it. */
  code?: string
  /** The steps for a person in its windows, if it reads no file. */
  steps?: readonly string[]
}

/** A file of the program's. Keys stay out of it where it can read them elsewhere. */
export type SettingsFile = {
  /** `~/` is the home folder. */
  path: string
  /** Other places of the same settings, which it reads too: the one that is there is edited. */
  elsewhere?: readonly string[]
  /** The file as it is where there was none. */
  text: string
  /** Whether people have settings of their own in it, which stay; `own` is ours alone, and replaced. */
  format: 'json' | 'toml' | 'own'
  /** Lists, by their place (`a.b`, empty for the whole file): the key that tells their entries apart. */
  lists?: Readonly<Record<string, string>>
  /** Places of what an earlier setup may have said: taken out where `text` does not say it. */
  without?: readonly (readonly string[])[]
}

/** The variable with the key, for programs that let one choose its name. */
export const keyVariable = 'TRIWIRE_API_KEY'

/**
 * Names the conversation (spec 4.1). Without a name a model of the messages wire is not asked to cache (ruling T5), and a
 * long conversation costs three times as much. For an agent that names none, a fixed word is enough: the text decides
 * what is cached.
 */
export const sessionHeader = 'x-session-id'

/** For programs whose settings cannot be read without a window, where none is known: nearly all models have as much. */
export const contextTokens = 128_000

/** The same, of an answer. */
export const outputTokens = 8_192

/** The text of a JSON file; what is undefined is left out. */
export function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
