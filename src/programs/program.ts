import type { ClientWire } from '../catalog/wire-names.ts'
import type { Settings } from './settings.ts'

/** An agent, editor or SDK that can be set up for the gateway. docs/setup.md says which settings are tested. */
export type Program = {
  /** The wires that it can use, the preferred one first. */
  wires: readonly ClientWire[]
  /** The context window that it assumes by default; undefined if it needs none. */
  assumes?: string
  /** A text that the installed program must provide before its files are written, and the sentences shown if it does not. */
  asks?: { hear(): Promise<string | undefined>; otherwise: string; ifPrinted: string }
  settings(access: Access, wire: ClientWire): Settings
}

/** The figures of a model; undefined if they are not known. */
export type Figures = {
  /** Tokens of input and output together. */
  contextWindow: number | undefined
  outputTokensMax: number | undefined
}

/**
 * The address, the key and the model for a program, with the model's figures.
 * @property origin without `/v1`. Some programs add it themselves and others do not, which users often get wrong.
 * @property small the model for titles and other small work; the same model if none was named
 * @property told the text that the program itself provided
 */
export type Access = Figures & {
  origin: string
  key: string
  model: string
  small: Figures & { model: string }
  told?: string | undefined
}

/** Returns the tokens that are left for input beside the longest answer. */
export function promptOf({ contextWindow, outputTokensMax = 0 }: Figures): number | undefined {
  if (contextWindow === undefined) return undefined
  return contextWindow > outputTokensMax ? contextWindow - outputTokensMax : contextWindow
}
