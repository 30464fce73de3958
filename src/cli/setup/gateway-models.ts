import { asObject } from '../../bytes/json.ts'
import type { FetchResponse } from '../../upstream/http-fetch.ts'
import { ask, explainFailure } from '../ask.ts'

const timeoutMs = 10_000

/**
 * Returns the ids that a gateway lists, in its order. The key is sent if there is one.
 * @throws Error with the reason for a person, if there is no list
 */
export async function askModels(origin: string, key: string | undefined): Promise<string[]> {
  const url = `${origin}/v1/models`
  const headers: Record<string, string> = { accept: 'application/json' }
  // Servers that want a key look for it in one of these headers.
  if (key !== undefined) Object.assign(headers, { authorization: `Bearer ${key}`, 'x-api-key': key })
  let response: FetchResponse
  try {
    response = await ask(url, { headers, signal: AbortSignal.timeout(timeoutMs) })
  } catch (error) {
    throw new Error(
      `${url} cannot be reached (${explainFailure(error, url, `no answer within ${timeoutMs / 1_000} s`)})`,
    )
  }
  const text = await response.text().catch(() => '')
  if ([401, 403].includes(response.status))
    throw new Error(`${url} wants ${key === undefined ? 'a key: give it with --key' : 'another key'}`)
  if (response.status >= 300 && response.status < 400) {
    const to = URL.parse(response.headers.get('location') ?? '', url)?.origin
    throw new Error(`${url} redirects${to ? ` to ${to}` : ''}, which is not followed: name that with --url`)
  }
  if (!response.ok) throw new Error(`${url} answers ${response.status}: is this the address of the gateway?`)
  const ids = readIds(text)
  if (!ids || ids.length === 0) throw new Error(`${url} lists no models: is this the address of the gateway?`)
  return ids
}

function readIds(text: string): string[] | undefined {
  try {
    const data = asObject(JSON.parse(text))?.['data']
    if (!Array.isArray(data)) return undefined
    return data.map((row) => asObject(row)?.['id']).filter((id) => typeof id === 'string')
  } catch {
    return undefined
  }
}
