import { clientWires } from '#probes'
import { builtInScripts } from '../../catalog/built-in-scripts.ts'
import { type DoctorReply, readModelIds, send } from '../ask.ts'
import { needKey } from './read-answer.ts'

/** @property named the models that the person named; if there are any, the gateway's list is not used */
type ModelChoice = {
  origin: string
  key: string
  named: readonly string[]
  modelsMax: number
  timeoutMs: number
}

/** @property skipped the number of listed models that are not tested */
type Chosen = { models: string[]; skipped: number; isPeer: boolean }

/**
 * Chooses the models to test. They are the named models, or else the first models in the gateway's list, except models
 * that simulate faults.
 * @throws Error for people if the gateway cannot be reached, refuses the key, or does not list a named model
 */
export async function chooseModels(choice: ModelChoice): Promise<Chosen> {
  const { origin, named, modelsMax } = choice
  const seen = await askList(choice).catch((error: Error) => {
    throw new Error(
      `${origin} cannot be reached: ${error.message}. Start the gateway, or name its address with --base-url`,
    )
  })
  needKey(seen)
  const isPeer = !ownRequestId.test(seen.headers.get('x-request-id') ?? '')
  // Ids with control characters are ignored, because a terminal would obey these.
  const listed = seen.status === 200 ? readModelIds(seen.text).filter((id) => /^\P{Cc}+$/u.test(id)) : []
  if (named.length > 0) {
    // If the gateway lists models, it must list the named models. Otherwise the probes show whether they exist.
    const unknown = listed.length > 0 ? named.find((id) => !listed.includes(id)) : undefined
    if (unknown === undefined) return { models: [...new Set(named)], skipped: 0, isPeer }
    const some = listed.slice(0, 5).join(', ') + (listed.length > 5 ? ', …' : '')
    throw new Error(`${origin} lists no model "${unknown}". Name one of ${some} (GET /v1/models has all)`)
  }
  if (listed.length === 0) {
    throw new Error(
      `${origin}/v1/models lists no model (status ${seen.status}). Check --base-url, or name one with --model`,
    )
  }
  const wanted = isBuiltIn(listed) ? plainIds : listed
  return { models: wanted.slice(0, modelsMax), skipped: Math.max(0, wanted.length - modelsMax), isPeer }
}

/** The form of request ids that only triwire makes (ruling R5): `req_` and a UUIDv7 without dashes. */
const ownRequestId = /^req_[0-9a-f]{12}7[0-9a-f]{19}$/

/** Gets the list of models. If the server refuses the key in the usual header, the messages wire's header is tried. */
async function askList({ origin, key, timeoutMs }: ModelChoice): Promise<DoctorReply> {
  const url = `${origin}/v1/models`
  const first = await send({ url, headers: { authorization: `Bearer ${key}` }, timeoutMs })
  if (first.status !== 401 && first.status !== 403) return first
  const second = await send({ url, headers: clientWires.messages.keyHeaders(key), timeoutMs })
  return second.status === 200 ? second : first
}

const plainIds = builtInScripts.filter(({ upstreamModel }) => upstreamModel === 'sim').map(({ id }) => id)

function isBuiltIn(ids: readonly string[]): boolean {
  return ids.length === builtInScripts.length && builtInScripts.every(({ id }) => ids.includes(id))
}
