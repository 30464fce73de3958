import type { WireName } from '../src/catalog/model.ts'

/** What a server does wrong itself, on one of its wires, whoever asks. */
export type KnownFault = {
  /** The wire that its model is declared with. */
  modelWire: WireName
  /** Names of features. */
  features: readonly string[]
  /** Only for clients of the same wire: a translation works around it. */
  isNativeOnly?: true
  words: string
}

/** By server. A cell that fails without standing here is ours, and fails the run. */
export const knownFaults: Readonly<Record<string, readonly KnownFault[]>> = {
  'llama.cpp': [],
}
