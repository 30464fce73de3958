import type { Case, Expectation, Json } from './case.ts'
import { parse } from './json.ts'
import { findDifferences, type ModelNames, type Pair, type Trace } from './verdict.ts'

/*
 * Proves that cases can fail. From a run that passed, it makes wrong runs: with a value changed, dropped or added, or
 * with a list shortened, lengthened or in another order. Every expectation of the case must notice at least one wrong
 * run.
 */

/** @property expectation the side and path of an expectation that noticed nothing */
export type Proof = { made: number; noticed: number; expectations: number; blind: string[] }

/** Tries wrong runs made of one that passed. */
export function proveCase(one: Case, pair: Pair, trace: Trace, names: ModelNames): Proof {
  const expectations = expectationsOf(one, pair, trace)
  const seen = new Set<string>()
  let [made, noticed] = [0, 0]
  for (const wrong of wrongRuns(one, pair, trace)) {
    made++
    const differences = findDifferences(one, pair, wrong, names)
    if (differences.length > 0) noticed++
    for (const { side, path } of differences) {
      for (const entry of expectations) if (entry.side === side && path.startsWith(entry.path)) seen.add(nameOf(entry))
    }
  }
  const blind = expectations.map(nameOf).filter((name) => !seen.has(name))
  return { made, noticed, expectations: expectations.length, blind }
}

/** Makes wrong runs of one that passed. */
export function* wrongRuns(one: Case, pair: Pair, trace: Trace): Generator<Trace> {
  const expectations = expectationsOf(one, pair, trace)
  for (const kind of ['steps', 'asked'] as const) {
    for (const [at, observation] of trace[kind].entries()) {
      const seen = observation as unknown as Json
      const put = (wrong: Json) => ({ ...trace, [kind]: (trace[kind] as unknown[]).with(at, wrong) })
      for (const wrong of wrongsOf(seen)) yield put(wrong)
      for (const { path, matcher } of expectations.filter((entry) => entry.kind === kind && entry.at === at)) {
        for (const wrong of additions(seen, path, matcher)) yield put(wrong)
      }
    }
  }
  yield { ...trace, asked: [] }
  yield { ...trace, asked: [...trace.asked, ...trace.asked.slice(-1), ...trace.asked.slice(-1)] }
  if (trace.bill !== undefined) for (const bill of [trace.bill * 2 + 1, 0, -1]) yield { ...trace, bill }
}

/** Collects what wrong runs prove of the cases. Runs that differ are left out. `tell` says it in words. */
export function createProofs() {
  let [made, noticed, expectations, runs] = [0, 0, 0, 0]
  const blind: string[] = []
  const add = (one: Case, pair: Pair, trace: Trace, names: ModelNames): void => {
    if (findDifferences(one, pair, trace, names).length > 0) return
    const proof = proveCase(one, pair, trace, names)
    runs++
    made += proof.made
    noticed += proof.noticed
    expectations += proof.expectations
    blind.push(...proof.blind.map((name) => `${one.id} ${pair.client}>${pair.model}, ${name}`))
  }
  const tell = () => {
    const seeing = `${expectations - blind.length} of ${expectations} expectations of ${runs} runs`
    const lines = blind.map((name) => `blind: no wrong run was noticed by ${name}`)
    lines.push(`${seeing} noticed one of ${made} wrong runs; ${noticed} wrong runs were noticed`)
    return { text: lines.join('\n'), isBlind: blind.length > 0 }
  }
  return { add, tell }
}

type Expected = { kind: 'steps' | 'asked'; at: number; side: string; path: string; matcher: Json }

const nameOf = ({ side, path }: Expected) => `${side}: ${path}`

/** Lists the expectations of the case that apply to the run. */
function expectationsOf(one: Case, pair: Pair, trace: Trace): Expected[] {
  const steps = (one.client[pair.client] ?? one.client['*'])!.steps
  const exchanges = (one.model && (one.model[pair.model] ?? one.model['*'])!.exchanges) ?? []
  const of = (kind: Expected['kind'], at: number, side: string, expect: Expectation = {}) =>
    Object.entries(expect).map(([path, matcher]) => ({ kind, at, side, path, matcher }))
  return [
    ...trace.steps.flatMap((_, at) => of('steps', at, `client, step ${at + 1}`, steps[at]!.expect)),
    ...trace.asked.flatMap((_, at) => of('asked', at, `model, request ${at + 1}`, exchanges[at]?.expect)),
    ...(trace.bill === undefined ? [] : of('steps', -1, 'bill', { amount: 0 })),
  ]
}

/** Makes wrong copies of a value: one for each change at each place in it. */
function* wrongsOf(value: Json): Generator<Json> {
  if (Array.isArray(value)) {
    yield [...value, ...value.slice(-1)]
    yield [...value, { added: true }]
    if (value.length > 0) yield value.slice(0, -1)
    if (value.length > 0) yield value.slice(1)
    if (value.length > 1) yield value.toReversed()
    for (const [at, entry] of value.entries()) for (const wrong of wrongsOf(entry)) yield value.with(at, wrong)
  } else if (typeof value === 'object' && value !== null) {
    for (const name of Object.keys(value)) {
      const { [name]: _, ...rest } = value
      yield rest
      yield { ...value, [name]: null }
      for (const wrong of wrongsOf(value[name]!)) yield { ...value, [name]: wrong }
    }
    yield { ...value, added: true }
  } else if (typeof value === 'string') {
    yield ''
    yield `${value}x`
    yield `x${value}`
    yield value.slice(1)
    // JSON in a text gets wrong values too.
    for (const wrong of wrongJson(value)) yield wrong
  } else if (typeof value === 'number') {
    yield value * 2 + 1
    yield -1
    yield 599
  } else yield value !== true
}

function* wrongJson(text: string): Generator<string> {
  if (!/^\s*[[{]/.test(text) || text.length > 20_000) return
  const value = parse(text)
  if (value !== undefined) for (const wrong of wrongsOf(value)) yield JSON.stringify(wrong)
}

/**
 * Puts values at a path that has only names and entries, for expectations that a value is absent. The texts and numbers
 * of the matcher are also put there, for matchers that forbid them.
 */
function* additions(value: Json, path: string, matcher: Json): Generator<Json> {
  if (/[|*?]/.test(path)) return
  const steps = path.match(/\["[^"]*"\]|\[-?\d+\]|[A-Za-z_$][\w$-]*/g) ?? []
  for (const wrong of ['added', 1, true, null, [], {}, ['added'], { added: 1 }, ...scalarsOf(matcher)] as Json[]) {
    yield putAt(value, steps, wrong)
  }
}

function scalarsOf(matcher: Json): Json[] {
  if (typeof matcher !== 'object' || matcher === null) return [matcher]
  return Object.values(matcher).flatMap(scalarsOf)
}

function putAt(value: Json | undefined, [step, ...rest]: readonly string[], wrong: Json): Json {
  if (step === undefined) return wrong
  const entry = /^\[(-?\d+)\]$/.exec(step)?.[1]
  if (entry !== undefined) {
    const list = Array.isArray(value) ? value : []
    const at = Number(entry) < 0 ? Math.max(0, list.length + Number(entry)) : Number(entry)
    const copy = [...list]
    copy[at] = putAt(list[at], rest, wrong)
    return copy
  }
  const name = step.startsWith('[') ? (JSON.parse(step) as [string])[0] : step
  const object = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
  return { ...object, [name]: putAt(object[name], rest, wrong) }
}
