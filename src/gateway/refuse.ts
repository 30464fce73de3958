import type { Model } from '../catalog/model.ts'
import type { GatewayError } from '../errors.ts'
import { hostingWords } from '../upstream/hosting-words.ts'
import { refusalOf, rejected } from '../upstream/refusal.ts'
import { scrub } from '../upstream/scrub.ts'
import type { Target } from '../upstream/target.ts'
import type { Failure, Verdict } from '../upstream/verdict.ts'
import { clientWires } from '../wires/wires.ts'
import type { Exchange } from './exchange.ts'
import type { Flow } from './fairness/places.ts'
import type { Snapshot } from './gateway.ts'

/** A failed attempt, with the facts from which the client's error is made. */
export type Failed = {
  failure: Failure
  verdict: Verdict
  target: Target | undefined
  /** The chain's entry that failed. It is set if another entry of the chain was asked afterwards. */
  of?: { model: Model; exchange: Exchange }
}

/** The paths that clients know. Error texts may contain them. */
const ownPaths = clientWires.flatMap(({ client: { path, counter } }) => (counter ? [path, counter.path] : [path]))

type RefuseParts = { flow: Flow; snapshot: Snapshot; model: Model; exchange: Exchange }

/**
 * Makes the client's error for a failed request. The snapshot and the exchange tell which words the error must hide.
 * @param target the target of the attempt that failed; undefined if there was no attempt
 */
export function refuse(
  parts: Omit<RefuseParts, 'flow'>,
  target: Target | undefined,
  failure: Failure,
  verdict: Verdict,
): GatewayError {
  // Only a refusal by a model has a text to scrub, and it has a target.
  return refusalOf(verdict.tell, failure, () => scrubContext(parts, target!), parts.exchange.inClientWords)
}

/**
 * Returns the provider's error text for operators. It is scrubbed, has at most 400 characters, and lacks parts that
 * repeat the request (CON-4). Undefined if nothing is left, or if the request's body was freed from memory.
 */
export function providerText(parts: RefuseParts, target: Target | undefined, { fault }: Failure): string | undefined {
  const { flow, snapshot, exchange } = parts
  if (fault.text === '' || !snapshot.config.explainUpstreamText) return undefined
  const code = fault.code === undefined ? {} : { code: fault.code }
  const said = scrub(fault.text, { ...scrubContext(parts, target!), ...code, generic: '' })
  return (said && exchange.withoutEchoes(said, flow)) || undefined
}

/** Returns an error's message for operators. A message that quotes the provider follows the rules of `providerText`. */
export function explainedMessage(
  { flow, snapshot, exchange }: RefuseParts,
  { message }: GatewayError,
  { tell }: Verdict,
): string {
  if (tell !== 'rejected') return message
  return (snapshot.config.explainUpstreamText && exchange.withoutEchoes(message, flow)) || rejected
}

function scrubContext({ snapshot, model, exchange }: Omit<RefuseParts, 'flow'>, target: Target) {
  return {
    modelId: model.id,
    upstreamModels: [...new Set([model.upstreamModel, target.model.upstreamModel])],
    hidden: hostingWords(snapshot.config, target.upstream, snapshot.keyOf),
    ownPaths,
    isSent: (id: string) => exchange.holds(id),
  }
}
