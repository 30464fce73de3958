/** The dialects, by the names the code uses for them (ruling N1); what each of them is stands in its folder in `wires/`. */
export const wireNames = ['messages', 'chat', 'responses'] as const
export type WireName = (typeof wireNames)[number]

/**
 * The path of each wire, for us and for upstreams (spec 1.2). After a base URL with a path of its own, the vendor's SDKs of one
 * wire add the version themselves. Those of the others expect it in the base (ruling P8).
 */
export const wirePlaces: Readonly<Record<WireName, { path: string; keepsVersion: boolean }>> = {
  messages: { path: '/v1/messages', keepsVersion: true },
  chat: { path: '/v1/chat/completions', keepsVersion: false },
  responses: { path: '/v1/responses', keepsVersion: false },
}
