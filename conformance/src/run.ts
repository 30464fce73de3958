import type { Deviation } from './adapter.ts'
import type { Case, ScriptedEvent, Wire } from './case.ts'
import { pairsOf } from './load-cases.ts'
import type { ScriptedModel } from './model.ts'
import type { Result } from './report.ts'
import { runCase } from './run-case.ts'
import { describe, judge, type ModelNames, type Pair, type Trace, type Verdict } from './verdict.ts'

/** A gateway that runs, and what is known of it. */
export type Subject = {
  origin: string
  key: string
  model: ScriptedModel
  features: readonly string[]
  pairs?: readonly string[] | undefined
  deviations: readonly Deviation[]
  lanes: number
  jobs: number
  names(wire: Wire, lane: number): ModelNames
  readSpent?: (() => Promise<number>) | undefined
  headers?: ((wire: Wire) => Readonly<Record<string, string>>) | undefined
  onResult?(result: Result): void
  /** Called with the trace of each first attempt, for `--prove`. */
  onTrace?(one: Case, pair: Pair, trace: Trace, names: ModelNames): void
}

/**
 * Runs cases on all of their pairs. Those with a bill run one after the other. Those whose model fails come last, because a gateway
 * may leave such a model alone for a while.
 */
export async function runCases(cases: readonly Case[], subject: Subject): Promise<Result[]> {
  const runs = cases.flatMap((one) => pairsOf(one).map((pair) => ({ one, pair })))
  const results: Result[] = []
  const free = Array.from({ length: subject.lanes }, (_, at) => at + 1)
  const work = async (queue: typeof runs) => {
    for (let run = queue.shift(); run; run = queue.shift()) {
      // The lane that has rested longest is the next one.
      const lane = free.shift()!
      const result = await runOne(run.one, run.pair, lane, subject)
      free.push(lane)
      results.push(result)
      subject.onResult?.(result)
    }
  }
  for (const fails of [false, true]) {
    const phase = runs.filter(({ one }) => hasFailingModel(one) === fails)
    const plain = phase.filter(({ one }) => !one.bill)
    await Promise.all(Array.from({ length: Math.min(subject.jobs, subject.lanes) }, () => work(plain)))
    await work(phase.filter(({ one }) => one.bill))
  }
  return results.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
}

/** Whether the model refuses, cuts its answer, or sends an invalid one. */
export function hasFailingModel({ client, model = {} }: Case): boolean {
  const steps = Object.values(client).flatMap((side) => side.steps)
  const replies = Object.values(model).flatMap(({ exchanges }) => exchanges.map(({ reply }) => reply))
  return (
    steps.some(({ expect }) => (expect?.['status'] ?? 200) !== 200) ||
    replies.some(
      ({ status = 200, cutAfterBytes, events }) =>
        status >= 400 || cutAfterBytes !== undefined || (events && (events.length < 2 || events.some(endsBadly))),
    )
  )
}

function endsBadly(event: ScriptedEvent): boolean {
  return (
    'cut' in event ||
    'hang' in event ||
    ('data' in event && /"type":"(error|response.failed)"|"error":\{/.test(JSON.stringify(event.data)))
  )
}

function placeOf({ case: id, pair }: Result): string {
  return `${id} ${pair}`
}

async function runOne(one: Case, pair: Pair, lane: number, subject: Subject): Promise<Result> {
  const started = performance.now()
  const name = `${pair.client}>${pair.model}`
  const finish = ({ verdict, differences, note }: Verdict): Result => ({
    case: one.id,
    area: one.area,
    level: one.level,
    pair: name,
    verdict,
    ...(note === undefined ? {} : { note }),
    differences: differences.map(describe),
    ms: Math.round(performance.now() - started),
  })
  const reason = whyUnsupported(one, name, subject)
  if (reason) return finish({ verdict: 'unsupported', differences: [], note: reason })
  const names = subject.names(pair.model, lane)
  const attempt = async (isFirst: boolean): Promise<Verdict> => {
    const trace = await runCase(one, pair, { ...subject, lane, names } as never)
    if (isFirst) subject.onTrace?.(one, pair, trace, names)
    return judge(one, pair, trace, names)
  }
  const first = await attempt(true)
  if (first.verdict !== 'fail') return finish(first)
  const deviation = findDeviation(subject.deviations, one.id, pair)
  if (deviation) return finish({ ...first, verdict: 'deviation', note: `${deviation.says} (${deviation.page})` })
  const second = await attempt(false)
  if (second.verdict === 'fail') return finish(first)
  return finish({ ...first, verdict: 'flaky', note: `a second try: ${second.verdict}` })
}

function whyUnsupported({ needs = [], bill }: Case, pair: string, subject: Subject): string | undefined {
  const missing = needs.find((name) => !subject.features.includes(name))
  if (missing) return `it needs ${missing}, which is not switched on`
  if (bill && !subject.readSpent) return 'the bill cannot be read'
  if (subject.pairs && !subject.pairs.includes(pair)) return 'the gateway has no such pair'
  return undefined
}

/** Finds the declared deviation of a case on a pair. */
export function findDeviation(deviations: readonly Deviation[], id: string, pair: Pair): Deviation | undefined {
  return deviations.find(
    ({ cases, pairs }) =>
      cases.some((name) => name === id || (name.endsWith('/*') && id.startsWith(name.slice(0, -1)))) &&
      (!pairs ||
        pairs.some((name) => {
          const [client, model] = name.split('>')
          return (client === '*' || client === pair.client) && (model === '*' || model === pair.model)
        })),
  )
}
