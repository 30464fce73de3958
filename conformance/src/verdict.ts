import type { Case, Expectation, Json, Wire } from './case.ts'
import { type Bindings, findMismatches, type Mismatch } from './match.ts'
import type { ClientObservation, ModelObservation } from './observation.ts'
import { replaceModel } from './replace.ts'

export type Pair = { client: Wire; model: Wire }

/** All that was seen in one run of a case. `fault` is the reason why a step was not sent. */
export type Trace = {
  steps: ClientObservation[]
  asked: ModelObservation[]
  wrongWire?: Wire
  fault?: string
  /** What the run cost, in the currency of prices.json; absent if the gateway's bill cannot be read. */
  bill?: number
}

/** The names of the models, as the client and the upstream call them. */
export type ModelNames = { client: string; upstream: string }

export type VerdictName = 'pass' | 'fail' | 'refused' | 'unsupported' | 'deviation' | 'flaky'

/** A difference, with its side: `client` and the step, `model` and the exchange, `bill`. */
export type Difference = Mismatch & { side: string }

export type Verdict = { verdict: VerdictName; differences: Difference[]; note?: string }

/** Judges a run. It depends only on its arguments and has no effect, so that it can be tried on wrong runs. */
export function judge(one: Case, pair: Pair, trace: Trace, names: ModelNames): Verdict {
  if (trace.wrongWire) {
    const note = `the gateway asked this model on ${trace.wrongWire}, not on ${pair.model}`
    return { verdict: 'unsupported', differences: [], note }
  }
  const differences = findDifferences(one, pair, trace, names)
  if (differences.length === 0) return { verdict: 'pass', differences }
  const note = findRefusal(one, trace.steps)
  if (note !== undefined) return { verdict: 'refused', differences: [], note }
  const missing = trace.steps.find(({ status }) => notServed.has(status))
  if (missing && !one.client[pair.client]?.steps.some(expectsStatus(missing.status)) && trace.asked.length === 0) {
    const note = `status ${missing.status}: the gateway does not serve this`
    return { verdict: 'unsupported', differences: [], note }
  }
  return { verdict: 'fail', differences }
}

/** The statuses with which servers answer paths that they do not serve. */
const notServed = new Set([404, 405, 501])

const expectsStatus =
  (status: number) =>
  ({ expect }: { expect?: Expectation }) =>
    JSON.stringify(expect?.['status'] ?? null).includes(String(status))

/** Describes an honest refusal: a 4xx with one of the case's fields in its error. */
function findRefusal({ fields = [] }: Case, steps: readonly ClientObservation[]): string | undefined {
  for (const { status, error } of steps) {
    if (status < 400 || status >= 500 || !error) continue
    const words = JSON.stringify([error.param, error.message])
    const field = fields.find((name) => words.includes(name))
    if (field !== undefined) return `status ${status} names ${field}`
  }
  return undefined
}

/** Lists all differences between a run and what its case expects, the client's first. */
export function findDifferences(one: Case, pair: Pair, trace: Trace, names: ModelNames): Difference[] {
  const { client, model, bindings } = judgement(one, pair)
  const found: Difference[] = []
  const add = (side: string, mismatches: readonly Mismatch[]) =>
    found.push(...mismatches.map((mismatch) => ({ side, ...mismatch })))
  const checkStep = (at: number) => {
    const [step, seen] = [client[at], trace.steps[at]]
    if (!step || !seen) return
    const expectation: Expectation = { ...(seen.ended === 'left' ? {} : always), ...step.expect }
    add(`client, step ${at + 1}`, check(expectation, seen, names.client, bindings))
  }
  const checkExchange = (at: number) => {
    const [seen, expect] = [trace.asked[at], model?.exchanges[at]?.expect]
    if (seen && expect) add(`model, request ${at + 1}`, check(expect, seen, names.upstream, bindings))
  }
  const count = Math.max(client.length, trace.asked.length)
  for (let at = 0; at < count; at++) {
    checkStep(at)
    checkExchange(at)
  }
  if (trace.fault) found.push({ side: 'client', path: 'steps', expected: 'each to be asked', actual: trace.fault })
  const asked = model ? (model.asked ?? { $atLeast: model.exchanges.length }) : 0
  add('model', findMismatches({ requests: asked }, { requests: trace.asked.length }, bindings))
  if (one.bill && trace.bill !== undefined) {
    const { amount } = one.bill
    const matcher = typeof amount === 'number' ? { $near: amount } : amount
    add('bill', findMismatches({ amount: matcher }, { amount: trace.bill }, bindings))
  }
  return found
}

/** The expectations of each answer, unless its case has another one for the same path. */
const always: Expectation = { disorder: { $absent: true }, ended: { $not: 'late' } }

function judgement({ client, model }: Case, pair: Pair) {
  return {
    client: (client[pair.client] ?? client['*'])!.steps,
    model: model && (model[pair.model] ?? model['*'])!,
    bindings: new Map() as Bindings,
  }
}

function check(expectation: Expectation, seen: object, model: string, bindings: Bindings): Mismatch[] {
  const observation = seen as unknown as Json
  return findMismatches(replaceModel(expectation as Json, model) as Expectation, observation, bindings)
}

/** Returns what `$same` has bound by now, for the requests of later steps. */
export function bindingsSoFar(one: Case, pair: Pair, trace: Trace, names: ModelNames): Bindings {
  const { client, model, bindings } = judgement(one, pair)
  for (const [at, seen] of trace.steps.entries()) {
    const wanted = client[at]!.expect
    if (wanted) check(wanted, seen, names.client, bindings)
    const [asked, expect] = [trace.asked[at], model?.exchanges[at]?.expect]
    if (asked && expect) check(expect, asked, names.upstream, bindings)
  }
  return bindings
}

/** Says a difference in one line. */
export function describe({ side, path, expected, actual }: Difference): string {
  const text = actual === undefined ? 'absent' : JSON.stringify(actual)
  return `${side}: ${path} is ${text.length > 200 ? `${text.slice(0, 200)}…` : text}; expected ${expected}`
}
