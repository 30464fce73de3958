import { asObject } from '../../bytes/json.ts'
import { builtInScripts } from '../../simulator/built-in-scripts.ts'
import { send } from './send.ts'

/** @param named what the person asked for, in place of what the gateway lists. */
export type Choice = { origin: string; named: readonly string[]; modelsMax: number; timeoutMs: number }

/**
 * Which models are asked: those named, else the first of the gateway's list. Of the built-in catalog only those that
 * behave, since the others are there to misbehave. `skipped` counts what the list has beyond.
 * @throws Error in words for the person at the terminal when the gateway is not there, or lists no such model.
 */
export async function chooseModels(choice: Choice): Promise<{ models: string[]; skipped: number }> {
  const { origin, named, modelsMax, timeoutMs } = choice
  const seen = await send({ url: `${origin}/v1/models`, headers: {}, timeoutMs }).catch((error: Error) => {
    throw new Error(
      `${origin} cannot be reached: ${error.message}. Start the gateway, or name its address with --base-url`,
    )
  })
  const listed = seen.status === 200 ? readIds(seen.text) : []
  if (named.length > 0) {
    // What shows no list is found out by the probes; what shows one is taken at its word.
    const unknown = listed.length > 0 ? named.find((id) => !listed.includes(id)) : undefined
    if (unknown === undefined) return { models: [...new Set(named)], skipped: 0 }
    const some = listed.slice(0, 5).join(', ') + (listed.length > 5 ? ', …' : '')
    throw new Error(`${origin} lists no model "${unknown}". Name one of ${some} (GET /v1/models has all)`)
  }
  if (listed.length === 0) {
    throw new Error(
      `${origin}/v1/models lists no model (status ${seen.status}). Check --base-url, or name one with --model`,
    )
  }
  const wanted = isBuiltIn(listed) ? plainIds : listed
  return { models: wanted.slice(0, modelsMax), skipped: Math.max(0, wanted.length - modelsMax) }
}

const plainIds = builtInScripts.filter(({ upstreamModel }) => upstreamModel === 'sim').map(({ id }) => id)

function isBuiltIn(ids: readonly string[]): boolean {
  return ids.length === builtInScripts.length && builtInScripts.every(({ id }) => ids.includes(id))
}

function readIds(text: string): string[] {
  try {
    const data = asObject(JSON.parse(text))?.['data']
    const ids = Array.isArray(data) ? data.map((row) => asObject(row)?.['id']) : []
    // What a terminal would act upon is no id.
    return ids.filter((id): id is string => typeof id === 'string' && /^\P{Cc}+$/u.test(id))
  } catch {
    return []
  }
}
