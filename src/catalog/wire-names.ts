/** The wires that clients speak, by the names the code uses for them (ruling N1). Models speak each of them, too. */
export const clientWireNames = ['messages', 'chat', 'responses'] as const
export type ClientWire = (typeof clientWireNames)[number]

/** The wires that models speak. A folder in `wires/` has the facts of each. */
export const modelWireNames = [...clientWireNames] as const
export type ModelWire = (typeof modelWireNames)[number]

/**
 * The path of each wire, for us and for upstreams (spec 1.2). After a base URL with a path of its own, the vendor's SDKs of one
 * wire add the version themselves. Those of the others expect it in the base (ruling P8).
 */
export const wirePlaces: Readonly<Record<ModelWire, { path: string; keepsVersion: boolean }>> = {
  messages: { path: '/v1/messages', keepsVersion: true },
  chat: { path: '/v1/chat/completions', keepsVersion: false },
  responses: { path: '/v1/responses', keepsVersion: false },
}
