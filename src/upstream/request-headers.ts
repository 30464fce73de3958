import { credentialOf } from './credential.ts'
import type { Target } from './target.ts'
import type { UpstreamRequest } from './upstreams.ts'

const fixedHeaders = ['content-type', 'application/json', 'accept-encoding', 'identity', 'user-agent', 'triwire']

/** Returns all headers of a request to a target, names and values in turn. */
export function headersOf(target: Target, request: UpstreamRequest): string[] {
  const headers = [...fixedHeaders, ...target.headers, 'content-length', String(request.body.length)]
  for (const [name, value] of credentialOf(target, request)) headers.push(name, value)
  for (const [name, value] of request.headers) headers.push(name, value)
  return headers
}
