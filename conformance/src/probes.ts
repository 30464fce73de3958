import type { Ask } from './case.ts'

/*
 * Questions for one endpoint whose model cannot be scripted. Programs that check a running gateway bundle this file.
 */

export { writeAsk } from './ask.ts'
export type { Ask, Wire } from './case.ts'
export { wires } from './case.ts'
export type { JsonObject } from './json.ts'
export type { Reading } from './observation.ts'
export { EventReader } from './sse.ts'
export { clientWires } from './wires/index.ts'

const report = {
  name: 'report',
  description: 'Report whether all is well.',
  parameters: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
}

/** Long enough for models that cache prefixes from 1,024 tokens on, with any tokenizer. */
const longText = 'The lighthouse keeper wrote down the weather, the ships and the tides of the day. '.repeat(100)

const hello = 'Say hello in one short sentence.'
/** The output cap leaves room for a model that reasons without being asked; few answers come near it. */
const cap = { maxTokens: 2_000 }

/** The questions, by name. In the bodies that `writeAsk` makes of them, the model is `$model`. */
export const probes = {
  text: { ...cap, text: hello },
  stream: { ...cap, text: hello, stream: true },
  call: { ...cap, text: 'Report that all is well.', stream: true, tools: [report], toolChoice: report.name },
  reasoning: { ...cap, text: 'Is 91 a prime number? One word.', stream: true, reasoning: 'low' },
  cache: { ...cap, text: hello, system: longText },
} satisfies { [name: string]: Ask }

/** The result of the call of the probe. */
export const reportResult = 'The report has been filed.'
