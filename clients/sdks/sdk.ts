import assert from 'node:assert/strict'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { Script } from '../../src/simulator/script.ts'

/** The cases of every SDK. A case is a function that throws if it fails, or the reason why the SDK cannot do it. */
export const caseNames = ['text', 'stream', 'tools', 'structured', 'image', 'reasoning', 'error', 'abort'] as const
export type CaseName = (typeof caseNames)[number]

export type Sdk = {
  /** Its name in `triwire setup`. */
  client: string
  /** Its packages in package.json. The version of the first is shown. */
  packages: readonly string[]
  wires: readonly ClientWire[]
  cases(target: Target): Record<CaseName, (() => Promise<void>) | string>
}

/** @property origin the gateway's address without a path */
export type Target = {
  origin: string
  key: string
  model: string
  wire: ClientWire
  modelWire: ClientWire
  /** Sets what the model does from now on, instead of its default answer. */
  script(script: Script): void
}

export const question = 'What is the capital of France?'
export const answer = /^You said: "What is the capital of France\?"/

/** The simulator makes the tool calls that a prompt names, with these arguments. */
export const bothCities = 'call get_weather {"city":"Paris"} and get_weather {"city":"Rome"}'

/** Checks an answer of the model to the results of both calls. */
export function assertWeather(text: string): void {
  assert.match(text, /sunny in Paris/)
  assert.match(text, /sunny in Rome/)
}

/** The simulator's answer to the schema {city: string, rainy: boolean}. */
export const sampled = { city: 'sample city', rainy: true }

/** A stream that lasts long enough for the client to abort it. */
export const longReply: Script = { tokens: 400, delay_ms: 10 }

/** The reason why a chat client cannot get the reasoning text of a responses model: chat has no field for a summary. */
export const noSummary = 'a chat request cannot ask a responses model for a summary of its reasoning'

/** A red image of 1 × 1 pixel. */
export const imageBase64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
