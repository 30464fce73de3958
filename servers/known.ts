import type { WireName } from '../src/catalog/model.ts'

/** What a server does wrong itself, on one of its wires, whoever asks. */
export type KnownFault = {
  /** The wire that its model is declared with. */
  modelWire: WireName
  /** Names of features. */
  features: readonly string[]
  /** Only for clients of the same wire: a translation works around it. */
  isNativeOnly?: true
  words: string
}

/** By server. A cell that fails without standing here is ours, and fails the run. */
export const knownFaults: Readonly<Record<string, readonly KnownFault[]>> = {
  'llama.cpp': [
    {
      modelWire: 'chat',
      features: ['one tool must be called'],
      isNativeOnly: true,
      words: 'ignores a `tool_choice` that names a tool',
    },
    {
      modelWire: 'messages',
      features: ['one tool must be called'],
      isNativeOnly: true,
      words: 'reads a `tool_choice` that names a tool as `any`',
    },
    {
      modelWire: 'messages',
      features: ['no tool may be called'],
      isNativeOnly: true,
      words: 'ignores `tool_choice: none`',
    },
    {
      modelWire: 'messages',
      features: ['a stop sequence'],
      isNativeOnly: true,
      words: 'tells a stop sequence as `end_turn`',
    },
    {
      modelWire: 'messages',
      features: ['reasoning, switched off'],
      words: 'has no way to switch reasoning off: `thinking: disabled` is ignored',
    },
    { modelWire: 'messages', features: ['a JSON schema'], words: 'ignores `output_config`' },
    { modelWire: 'responses', features: ['a JSON schema'], words: 'ignores `text.format`' },
    {
      modelWire: 'responses',
      features: ['the cap'],
      words: 'tells an answer that `max_output_tokens` has cut as `completed`',
    },
    {
      modelWire: 'responses',
      features: ['one tool must be called'],
      isNativeOnly: true,
      words: 'ignores a `tool_choice` that names a tool',
    },
    {
      modelWire: 'responses',
      features: ['a longer conversation'],
      isNativeOnly: true,
      words: 'refuses messages of the assistant without a `type`',
    },
  ],
  LiteLLM: [
    ...(['messages', 'chat', 'responses'] as const).map((modelWire) => ({
      modelWire,
      features: ['one tool must be called'],
      isNativeOnly: true as const,
      words: 'hands a `tool_choice` that names a tool on to llama.cpp, which ignores it',
    })),
    {
      modelWire: 'messages',
      features: ['a stop sequence'],
      isNativeOnly: true,
      words: 'tells a stop sequence as `end_turn`',
    },
    ...(['messages', 'chat'] as const).map((modelWire) => ({
      modelWire,
      features: ['twelve stop sequences'],
      isNativeOnly: true as const,
      words: 'hands on the first four stop sequences, and drops the others without a word',
    })),
  ],
}
