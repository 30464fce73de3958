import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { startTestGateway, type TestGateway, type TestOptions, testModel } from '../support/gateway.ts'
import { until } from '../support/waiting.ts'

/*
 * What the vendors' SDKs, unpatched, get from the gateway: each file has one SDK's client on one wire, each story runs
 * once for every kind of model.
 */

/** The wires that models speak. */
export const modelWires = ['messages', 'chat', 'responses'] as const satisfies readonly ClientWire[]

const behaviours = {
  plain: 'sim',
  slow: 'sim?tokens=400&delay_ms=10',
  broken: 'sim?cut_events=5',
  busy: 'sim?status=429&retry_after=7',
  down: 'sim?status=500',
  fussy: 'sim?status=400',
}

export type Behaviour = keyof typeof behaviours | 'once-busy'

/** The catalog id of a model that behaves so. */
export function model(behaviour: Behaviour, wire: ClientWire): string {
  return `${behaviour}-${wire}`
}

export function startSdkGateway(more: TestOptions = {}): Promise<TestGateway> {
  const models = modelWires.flatMap((wire) => [
    ...Object.entries(behaviours).map(([name, upstream_model]) =>
      testModel(`${name}-${wire}`, wire, { upstream_model, profile: 'simulator' }),
    ),
    testModel(`once-busy-${wire}`, wire, { upstream_model: 'once-busy', profile: 'simulator' }),
  ])
  return startTestGateway({ models, ...more })
}

/** A fetch for an SDK with which the model `once-busy` refuses the first call only, for longer than the gateway itself waits (Y26). */
export function refuseOnce({ simulator }: TestGateway): typeof fetch {
  simulator.script('once-busy', { status: 429, retry_after: 3 })
  return async (input, init) => {
    const response = await fetch(input, init)
    simulator.script('once-busy', { reply: 'Now there is room.' })
    return response
  }
}

/** Waits until the upstream has seen the client of its last request leave; what is read on has its time at once. */
export async function closedEarly({ simulator, server, advance }: TestGateway): Promise<boolean> {
  const last = simulator.requests.at(-1)!
  const hasLeft = () => {
    if (server.gateway.readers.count > 0) advance(10_000)
    return last.closedEarly
  }
  await until(hasLeft, 'the client of the last request leaves')
  return last.closedEarly
}

/** A red dot of 1 × 1. */
export const imageBase64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

export const weatherSchema = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city'],
  additionalProperties: false,
}

export const callBoth = 'call get_weather {"city":"Paris"} and get_weather {"city":"Rome"}'

/** Longer than a conversation key may be (ruling P6). */
export const longKey = 'k'.repeat(257)

/** Larger than a body may be (ruling R2). */
export const longText = 'x'.repeat(5_242_880)
