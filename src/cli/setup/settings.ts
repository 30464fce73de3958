/** What an agent or SDK has to be told, in the forms that it reads. */
export type Settings = {
  /** A file of its own. `~/` is the home folder; keys stay out of it where it can read them elsewhere. */
  file?: { path: string; text: string }
  /** Variables of the shell. */
  env?: Readonly<Record<string, string>>
  /** How it is started then. */
  run?: string
  /** A source text that uses it. */
  code?: string
}

/** Where those that let one choose are to look for the key. */
export const keyVariable = 'TRIWIRE_API_KEY'

/**
 * Names the conversation (spec 4.1). Without a name a model of the messages wire is not asked to cache (ruling T5), and a
 * long conversation costs three times as much. For an agent that names none, a fixed word does: what is cached is
 * told by the text.
 */
export const sessionHeader = 'x-session-id'

/** Agents want to know when to compact. The catalog has no context windows (spec 2.9): this many nearly all have. */
export const contextTokens = 128_000

/** The text of a JSON file. */
export function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
