import type { WireName } from '../catalog/model.ts'

/** What is served, by exact path; the query is ignored everywhere (spec 4, ruling R3). */
export type Route =
  | { walk: 'infer'; wire: WireName }
  | { walk: 'count_tokens'; wire: 'messages' }
  | { walk: 'list_models' }

const routes = new Map<string, { methods: readonly string[]; route: Route }>([
  ['/v1/messages', { methods: ['POST'], route: { walk: 'infer', wire: 'messages' } }],
  ['/v1/messages/count_tokens', { methods: ['POST'], route: { walk: 'count_tokens', wire: 'messages' } }],
  ['/v1/chat/completions', { methods: ['POST'], route: { walk: 'infer', wire: 'chat' } }],
  ['/v1/responses', { methods: ['POST'], route: { walk: 'infer', wire: 'responses' } }],
  ['/v1/models', { methods: ['GET', 'HEAD'], route: { walk: 'list_models' } }],
])

/** The route of a method and path, or undefined: a known path with a wrong method is unknown too (ruling R3). */
export function findRoute(method: string, path: string): Route | undefined {
  const entry = routes.get(path)
  return entry?.methods.includes(method) ? entry.route : undefined
}

/** The path of a request target without its query; an absolute-form target counts by its path alone. */
export function pathOf(target: string | undefined): string {
  let path = target ?? '/'
  const scheme = path.indexOf('://')
  if (scheme > 0 && path[0] !== '/') {
    const slash = path.indexOf('/', scheme + 3)
    path = slash < 0 ? '/' : path.slice(slash)
  }
  const query = path.indexOf('?')
  return query < 0 ? path : path.slice(0, query)
}

/**
 * Which envelope an error on this path has, before anything of the body is known (spec 7.1). A wrong method on a
 * messages path is an unknown URL, and those have the chat envelope (ruling R3).
 */
export function usesMessagesEnvelope(path: string): boolean {
  return path === '/v1/messages' || path === '/v1/messages/count_tokens'
}
