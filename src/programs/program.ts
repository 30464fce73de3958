import type { WireName } from '../catalog/model.ts'
import type { Settings } from './settings.ts'

/** An agent, editor or SDK that can be set to use the gateway. docs/setup.md says which settings are proven. */
export type Program = {
  /** The wires it can use, the one it prefers first. */
  wires: readonly WireName[]
  /** The context window that it assumes if none is set; undefined if it asks for none. */
  assumes?: string
  /** Text that the installed program must give before its files are written, and the sentences shown if it does not. */
  asks?: { hear(): Promise<string | undefined>; otherwise: string; ifPrinted: string }
  settings(access: Access, wire: WireName): Settings
}

/** The figures of a model; undefined if they are not known. */
export type Figures = {
  /** Tokens of input and output together. */
  contextWindow: number | undefined
  outputTokensMax: number | undefined
}

/**
 * The access of a program to the gateway, and the model it is to name there, with its figures.
 * @param origin without `/v1`. Some programs add it themselves and others do not, which people often get wrong.
 * @param small for titles and other small work; the model itself if none was named.
 * @param told the text that the program itself gave.
 */
export type Access = Figures & {
  origin: string
  key: string
  model: string
  small: Figures & { model: string }
  told?: string | undefined
}

/** The tokens that are left for input beside the longest answer. */
export function promptOf({ contextWindow, outputTokensMax = 0 }: Figures): number | undefined {
  if (contextWindow === undefined) return undefined
  return contextWindow > outputTokensMax ? contextWindow - outputTokensMax : contextWindow
}
