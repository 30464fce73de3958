import type { ClientWire } from '../src/catalog/wire-names.ts'

/** A fault of a server itself, which it has with any client. */
export type KnownFault = {
  /** The wires that its models are declared with. */
  modelWires: readonly ClientWire[]
  /** The names of the features that fail because of it. */
  features: readonly string[]
  /** Whether only clients of the same wire see it, because a translation works around it. */
  isNativeOnly?: true
  /** Whether the gateway corrects it for all clients. If a cell still fails, that is a fault of the gateway. */
  isMended?: true
  words: string
}

const all = ['messages', 'chat', 'responses'] as const

/** Known faults, by server. A cell that fails without an entry here is a fault of the gateway, and fails the run. */
export const knownFaults: Readonly<Record<string, readonly KnownFault[]>> = {
  'llama.cpp': [
    {
      modelWires: ['chat'],
      features: ['one tool must be called'],
      isNativeOnly: true,
      words: 'ignores a `tool_choice` that names a tool',
    },
    {
      modelWires: ['messages'],
      features: ['one tool must be called'],
      isNativeOnly: true,
      words: 'reads a `tool_choice` that names a tool as `any`',
    },
    {
      modelWires: ['messages'],
      features: ['no tool may be called'],
      isNativeOnly: true,
      words: 'ignores `tool_choice: none`',
    },
    {
      modelWires: ['messages'],
      features: ['a stop sequence'],
      isNativeOnly: true,
      words: 'reports a stop sequence as `end_turn`',
    },
    {
      modelWires: ['messages'],
      features: ['reasoning, switched off'],
      words: 'has no way to switch reasoning off: `thinking: disabled` is ignored',
    },
    { modelWires: ['messages'], features: ['a JSON schema'], words: 'ignores `output_config`' },
    { modelWires: ['responses'], features: ['a JSON schema'], words: 'ignores `text.format`' },
    {
      modelWires: ['responses'],
      features: ['the output cap'],
      words: 'reports an answer that `max_output_tokens` cut as `completed`',
    },
    {
      modelWires: ['responses'],
      features: ['one tool must be called'],
      isNativeOnly: true,
      words: 'ignores a `tool_choice` that names a tool',
    },
    {
      modelWires: ['responses'],
      features: ['a longer conversation'],
      isNativeOnly: true,
      words: 'refuses messages of the assistant without a `type`',
    },
  ],
  LiteLLM: [
    {
      modelWires: all,
      features: ['one tool must be called'],
      isNativeOnly: true,
      words: 'passes a `tool_choice` that names a tool to llama.cpp, which ignores it',
    },
    {
      modelWires: ['messages'],
      features: ['a stop sequence'],
      isNativeOnly: true,
      words: 'reports a stop sequence as `end_turn`',
    },
    {
      modelWires: ['messages', 'chat'],
      features: ['twelve stop sequences'],
      isNativeOnly: true,
      words: 'passes on the first four stop sequences, and drops the others without an error',
    },
    {
      modelWires: ['responses'],
      features: ['reasoning, shown', 'reasoning, then a tool call'],
      isMended: true,
      words:
        'returns reasoning as `output_text` without a `summary`. Its stream has a summary without the events of the part. Only a few events have sequence numbers, and these are counted differently',
    },
    {
      modelWires: all,
      features: ['an image, refused by the server', 'an over-long prompt'],
      isMended: true,
      words: 'wraps a refusal in a text with its own name, its provider’s name, its settings and an address',
    },
    {
      modelWires: all,
      features: ["the server refuses the gateway's key"],
      isMended: true,
      words: 'answers 400, `No connected db.`, to an unknown key if it has no database',
    },
  ],
}
