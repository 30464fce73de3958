import type { WireName } from '../catalog/model.ts'
import type { Settings } from './settings.ts'

/** An agent, editor or SDK that can be set to use the gateway. How far what it is told is proven stands in docs/setup.md. */
export type Program = {
  /** The wires it can use, the one it prefers first. */
  wires: readonly WireName[]
  /** What it takes a model's context window for that it is not told; undefined where it asks for none. */
  assumes?: string
  /** What must be heard from the installed program before its files are written; else what a person is told. */
  asks?: { hear(): Promise<string | undefined>; otherwise: string; ifPrinted: string }
  settings(access: Access, wire: WireName): Settings
}

/** What is known of a model; undefined where nobody said. */
export type Figures = {
  /** Tokens of input and output together. */
  contextWindow: number | undefined
  outputTokensMax: number | undefined
}

/**
 * What it needs to reach the gateway, and the model it is to name there, with its figures.
 * @param origin without `/v1`. Which of them add it themselves and which do not is what people get wrong.
 * @param small for titles and other small work; the model itself where none was named.
 * @param told what was heard from the program itself.
 */
export type Access = Figures & {
  origin: string
  key: string
  model: string
  small: Figures & { model: string }
  told?: string | undefined
}

/** What goes in, beside the longest answer. */
export function promptOf({ contextWindow, outputTokensMax = 0 }: Figures): number | undefined {
  if (contextWindow === undefined) return undefined
  return contextWindow > outputTokensMax ? contextWindow - outputTokensMax : contextWindow
}
