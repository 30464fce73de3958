import assert from 'node:assert/strict'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { Script } from '../../src/simulator/script.ts'

/** What every SDK is asked to do. A case is a run that throws, or the reason why the SDK has no words for it. */
export const caseNames = ['text', 'stream', 'tools', 'structured', 'image', 'reasoning', 'error', 'abort'] as const
export type CaseName = (typeof caseNames)[number]

export type Sdk = {
  /** As `triwire setup` names it. */
  client: string
  /** As package.json pins them; the first gives the version. */
  packages: readonly string[]
  wires: readonly ClientWire[]
  cases(target: Target): Record<CaseName, (() => Promise<void>) | string>
}

/** @param origin of the gateway, without a path. */
export type Target = {
  origin: string
  key: string
  model: string
  wire: ClientWire
  modelWire: ClientWire
  /** What the model does from now on, instead of what it does by itself. */
  script(script: Script): void
}

export const question = 'What is the capital of France?'
export const answer = /^You said: "What is the capital of France\?"/

/** The simulator calls what it is told to, with these arguments. */
export const bothCities = 'call get_weather {"city":"Paris"} and get_weather {"city":"Rome"}'

/** What the model says once it has both results. */
export function assertWeather(text: string): void {
  assert.match(text, /sunny in Paris/)
  assert.match(text, /sunny in Rome/)
}

/** What the simulator makes of the schema {city: string, rainy: boolean}. */
export const sampled = { city: 'sample city', rainy: true }

/** A stream that lasts long enough to be left. */
export const longReply: Script = { tokens: 400, delay_ms: 10 }

/** On chat nobody can ask a responses model for its reasoning text: the wire has no word for a summary. */
export const noSummary = 'a chat request cannot ask a responses model for a summary of its reasoning'

/** A red dot of 1 × 1. */
export const imageBase64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
