import type { WireName } from '../../catalog/model.ts'
import type { Settings } from './settings.ts'

/** An agent or SDK that can be set to use the gateway. What it is told is tried by the clients suite. */
export type Program = {
  /** The wires it can use, the one it prefers first. */
  wires: readonly WireName[]
  settings(access: Access, wire: WireName): Settings
}

/**
 * What it needs to reach the gateway, and the models it is to name there.
 * @param origin without a path. Which of them add `/v1` themselves and which do not is what people get wrong.
 */
export type Access = { origin: string; key: string; model: string; smallModel: string; outputTokensMax: number }
