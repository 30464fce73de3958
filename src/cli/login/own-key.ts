import { hostname } from 'node:os'
import { ownNameMax } from '../../accounts/sign-in/rows.ts'
import { parseObject } from '../../bytes/json.ts'
import { ask, explainFailure } from '../ask.ts'
import { plainText } from './exchange.ts'
import { SignInFault } from './fault.ts'

const patienceMs = 10_000

/**
 * Makes a key for an agent that cannot run a command to get tokens. The key has the person and the limits of the
 * session. It is paused while the identity provider has not confirmed the person for seven days.
 * @param agent the name of the agent, which becomes part of the key's name
 * @throws SignInFault with the gateway's reason
 */
export async function makeOwnKey(url: string, bearer: string, agent: string): Promise<string> {
  const place = `${url}/console/api/me/keys`
  let [status, text] = [0, '']
  try {
    const response = await ask(place, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, accept: 'application/json', 'content-type': 'application/json' },
      body: JSON.stringify({ name: `${agent} on ${hostname()}`.slice(0, ownNameMax).trim() }),
      signal: AbortSignal.timeout(patienceMs),
    })
    status = response.status
    text = await response.text(65_536)
  } catch (error) {
    throw new SignInFault(
      1,
      `${place} cannot be reached: ${explainFailure(error, place, `no answer within ${patienceMs / 1_000} s`)}`,
    )
  }
  const { key, detail, title } = parseObject(text) ?? {}
  if (status === 201 && typeof key === 'string' && /^[A-Za-z0-9_-]{8,200}$/.test(key)) return key
  const why = plainText(detail ?? title)
  throw new SignInFault(1, `the gateway makes no key for ${agent} (status ${status})${why ? `: ${why}` : ''}`)
}
