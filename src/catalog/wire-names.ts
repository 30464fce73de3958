/** The wires that clients use, by their names in the code (ruling N1). Models use all of these wires too. */
export const clientWireNames = ['messages', 'chat', 'responses'] as const
export type ClientWire = (typeof clientWireNames)[number]

/** The wires that models use. Each wire has a folder with its facts in `wires/`. */
export const modelWireNames = [...clientWireNames] as const
export type ModelWire = (typeof modelWireNames)[number]

/** The wire that most providers use. */
export const usualWire: ModelWire = 'chat'

/** The placeholder in a path for the upstream's name of the model. */
export const modelPlace = '{model}'

/** The endpoint of a wire. A path can contain the placeholder `modelPlace`. */
type WirePlace = {
  path: string
  /** The field for a key of the provider's prompt cache, on wires that have one. */
  cacheKey?: 'prompt_cache_key'
  /** The path of requests for a stream, if it differs from `path`. Some of these paths end in a query. */
  streamPath?: string
  keepsVersion: boolean
}

/**
 * The endpoint of each wire, at this gateway and at upstreams (spec 1.2). A base URL with a path can lack the version
 * (`/v1`). In this case the vendor's SDKs of the messages wire add the version. SDKs of the other wires do not (ruling
 * P8).
 */
export const wirePlaces: Readonly<Record<ModelWire, WirePlace>> = {
  messages: { path: '/v1/messages', keepsVersion: true },
  chat: { path: '/v1/chat/completions', cacheKey: 'prompt_cache_key', keepsVersion: false },
  responses: { path: '/v1/responses', cacheKey: 'prompt_cache_key', keepsVersion: false },
}
