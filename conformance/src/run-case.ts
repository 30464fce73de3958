import { setTimeout as pause } from 'node:timers/promises'
import type { Case, Wire } from './case.ts'
import { buildRequest, send } from './client.ts'
import type { ScriptedModel } from './model.ts'
import { bindingsSoFar, type ModelNames, type Pair, type Trace } from './verdict.ts'

/** Where a case runs. @property readSpent absent if the bill cannot be read */
export type Stage = {
  origin: string
  key: string
  model: ScriptedModel
  lane: number
  names: ModelNames
  readSpent?: () => Promise<number>
  headers?: (wire: Wire) => Readonly<Record<string, string>>
}

export const timeLimitMs = 10_000

/** How long the gateway may take to close a connection to the model, after the client has gone. */
const settleMs = 2_000

/** How long a bill may take to be written. */
const billMs = 5_000

/** Runs a case on a pair and returns all that was seen. It does not judge. */
export async function runCase(one: Case, pair: Pair, stage: Stage): Promise<Trace> {
  const script = one.model && (one.model[pair.model] ?? one.model['*'])
  const { steps } = (one.client[pair.client] ?? one.client['*'])!
  const before = one.bill && stage.readSpent ? await stage.readSpent() : 0
  const lane = stage.model.begin(stage.lane, pair.model, script)
  const trace: Trace = { steps: [], asked: lane.seen }
  const target = {
    origin: stage.origin,
    key: stage.key,
    model: stage.names.client,
    headers: stage.headers?.(pair.model),
  }
  const end = Date.now() + (one.timeLimitMs ?? timeLimitMs)
  for (const { request } of steps) {
    try {
      const bindings = bindingsSoFar(one, pair, trace, stage.names)
      const built = buildRequest(pair.client, request, target, bindings)
      const { leaveAfter } = request
      const limitMs = Math.max(1, end - Date.now())
      trace.steps.push(await send(pair.client, built, { origin: stage.origin, leaveAfter, limitMs }))
    } catch (error) {
      trace.fault = (error as Error).message
      break
    }
  }
  await stage.model.settle(lane, settleMs)
  if (lane.wrongWire) trace.wrongWire = lane.wrongWire
  if (one.bill && stage.readSpent) trace.bill = await readBill(stage.readSpent, before)
  return trace
}

/** Waits until something was billed, and then until the bill stays the same. */
async function readBill(readSpent: () => Promise<number>, before: number): Promise<number> {
  const end = Date.now() + billMs
  let spent = await readSpent()
  for (;;) {
    await pause(50)
    const now = await readSpent()
    const isSteady = now === spent && now !== before
    spent = now
    if (isSteady || Date.now() > end) return Math.round((spent - before) * 1e12) / 1e12
  }
}
