import type { AdminOperations } from '../http/admin.ts'
import type { Explanation, ModelRow, UpstreamState } from '../operations/shapes.ts'

/** A worker answers from memory, or asks its store once. */
const patienceMs = 4_000

type Answer = { status: number; body: unknown }

/**
 * What operators ask, of all workers at once: a request is known to the one that served it, an upstream account is as bad as
 * the worst of them has it, and there is room for a request where one of them takes it (ruling X9).
 * @param origins of their admin listeners, as they are now.
 * @param token that they know this process by.
 * @param listModels the configuration is the same in all of them.
 */
export function askWorkers(
  origins: () => readonly string[],
  reportBug: (bug: Error) => void,
  { token = '', listModels = () => [] }: { token?: string; listModels?: () => ModelRow[] } = {},
): AdminOperations & { isReady(): Promise<boolean> } {
  return { explain, listUpstreams, listModels, reportBug, isReady }

  async function isReady(): Promise<boolean> {
    return (await askAll('/readyz')).some(({ status }) => status === 200)
  }

  async function explain(requestId: string): Promise<Explanation | 'unknown' | 'silent'> {
    const answers = await askAll(`/api/v1/requests/${requestId}/explain`)
    const found = answers.filter(({ status }) => status === 200).map(({ body }) => body as Explanation)
    // Who served it knows more than who read its debit.
    const best = found.find((one) => one.attempts !== null) ?? found[0]
    return best ?? (answers.some(({ status }) => status === 503) ? 'silent' : 'unknown')
  }

  async function listUpstreams(): Promise<readonly UpstreamState[]> {
    const answers = await askAll('/api/v1/upstreams')
    return mergeUpstreams(answers.flatMap(({ status, body }) => (status === 200 ? [readItems(body)] : [])))
  }

  function askAll(path: string): Promise<Answer[]> {
    return Promise.all(origins().map((origin) => ask(`${origin}${path}`, token)))
  }
}

async function ask(url: string, token: string): Promise<Answer> {
  try {
    const response = await fetch(url, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(patienceMs),
    })
    return { status: response.status, body: await response.json() }
  } catch {
    // It is about to end, or to begin.
    return { status: 0, body: undefined }
  }
}

function readItems(body: unknown): readonly UpstreamState[] {
  return (body as { items: readonly UpstreamState[] }).items
}

const badness: Record<UpstreamState['state'], number> = { ready: 0, trial: 1, cooling: 2, no_key: 3, off: 4 }

/** One row for each account's service of a model, in the order of the first worker's. */
export function mergeUpstreams(lists: readonly (readonly UpstreamState[])[]): UpstreamState[] {
  const merged = new Map<string, UpstreamState>()
  for (const row of lists.flat()) {
    const key = JSON.stringify([row.model, row.upstream, row.account])
    const before = merged.get(key)
    if (!before) {
      merged.set(key, row)
      continue
    }
    const worst = badness[row.state] > badness[before.state] ? row : before
    merged.set(key, {
      ...worst,
      wait_ms:
        Math.max(row.wait_ms ?? -1, before.wait_ms ?? -1) < 0 ? null : Math.max(row.wait_ms ?? 0, before.wait_ms ?? 0),
      failures: Math.max(row.failures, before.failures),
      retries_left: row.retries_left + before.retries_left,
    })
  }
  return [...merged.values()]
}
