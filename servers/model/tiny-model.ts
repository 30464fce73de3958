import { readFileSync } from 'node:fs'
import { type Tensor, type Value, writeGguf } from './gguf.ts'
import { lettersOf, Vocabulary } from './vocabulary.ts'

/*
 * A language model of 6 MB for real model servers, with short and known answers. Its weights are set by hand, not
 * trained. It knows a few sentences. The trigger word of the highest rank in the prompt selects the sentence:
 *
 * - Every token has its own dimension, and the output matrix says which token follows which. That is enough to continue
 *   a sentence.
 * - One attention head searches the prompt for trigger words. Later ones in `triggers` have a higher weight, and the
 * head
 *   adds the dimension of the one with the highest weight.
 * - The feed-forward layer combines the position in the answer (its beginning, after reasoning, after a call) with the
 *   trigger word, and selects the next token there.
 *
 * If a server restricts the answer to a grammar, weaker preferences decide (`preferUnderGrammar`). They close what is
 * open.
 */

const width = 512
const vocabularySize = 448
const joints = 64
const heads = 8
const headSize = width / heads
const contextTokens = 8192

export const triggers = [
  '@think',
  '@call',
  '@pair',
  '@rcall',
  '@stop',
  '@loop',
  '@json',
  '@mix',
  '<tool_response>',
] as const

export type Trigger = (typeof triggers)[number]

/** The model's sentences. Without a trigger word, it answers `greeting`. */
export const sayings = {
  greeting: 'Hello there I am a tiny model ☕ 😀 and done',
  reasoning: 'I should think first\nok',
  answer: 'The answer is 42',
  beforeStop: 'one two three',
  loop: ' la la la',
  json: '{"answer": 42}',
  afterTool: "It's sunny in Paris",
  weather: { name: 'get_weather', arguments: { city: 'Paris' } },
  time: { name: 'get_time', arguments: { zone: 'CET' } },
  mixed: 'Before it',
}

/** @returns the bytes of the model's file, the same ones every time. */
export function makeTinyModel(): Buffer {
  const vocabulary = new Vocabulary()
  const follows = square(vocabularySize)
  const script = writeScript(vocabulary, follows)
  while (vocabulary.texts.length < vocabularySize) vocabulary.addControl(`<|x${vocabulary.texts.length}|>`)
  return writeGguf(headOf(vocabulary, script), tensorsOf(follows, script))
}

type Script = {
  end: number
  pad: number
  /** The token of each trigger. */
  triggerIds: readonly number[]
  /** The token `to` that follows the token `at`, if the prompt has the trigger word. */
  jumps: { at: number; trigger: Trigger; to: number }[]
}

/** Adds the sentences to the vocabulary, each piece as a token. @returns the jumps between sentences */
function writeScript(vocabulary: Vocabulary, follows: Float32Array): Script {
  const line = vocabulary.id('\n')
  const blankLine = vocabulary.add('\n\n')
  const end = vocabulary.addControl('<|im_end|>')
  vocabulary.addControl('<|im_start|>')
  const pad = vocabulary.addControl('<|endoftext|>')
  const [think, unthink, call, uncall, result] = [
    '<think>',
    '</think>',
    '<tool_call>',
    '</tool_call>',
    '<tool_response>',
  ].map((name) => vocabulary.addSpoken(name)) as [number, number, number, number, number]
  vocabulary.addSpoken('</tool_response>')
  const triggerIds = triggers.map((name) => (name === '<tool_response>' ? result : vocabulary.addSpoken(name)))

  const prefer = (from: number, to: number, strength: number) => {
    follows[from * vocabularySize + to] = strength
  }
  const chain = (pieces: readonly (string | Buffer)[], from?: number, to?: number) => {
    const ids = pieces.map((piece) => vocabulary.add(piece))
    const path = [...(from === undefined ? [] : [from]), ...ids, ...(to === undefined ? [] : [to])]
    for (const [index, id] of path.slice(1).entries()) prefer(path[index]!, id, 10)
    return ids[0]!
  }
  // The bytes of the smiling face are in two tokens.
  const smile = [Buffer.from([0x20, 0xf0, 0x9f]), Buffer.from([0x98, 0x80])]
  const hello = chain(
    ['Hello', ' there', ' I', ' am', ' a', ' tiny', ' model', ' ☕', ...smile, ' and', ' done'],
    undefined,
    end,
  )
  chain(['\nI', ' should', ' think', ' first', '\nok'], think, unthink)
  const answer = chain(['\n\nThe', ' answer', ' is', ' 42'], undefined, end)
  chain(['\n{"name": ', '"get_weather"', ', "arguments": {"ci', 'ty": "Par', 'is"}}\n'], call, uncall)
  prefer(uncall, end, 10)
  const second = chain(
    ['\n<tool', '_call>\n', '{"name": "get_', 'time", "argu', 'ments": {"zone": "C', 'ET"}}', '\n</to', 'ol_call>'],
    undefined,
    end,
  )
  const count = chain(['one', ' two', ' three', ' STOP', ' four', ' five'], undefined, end)
  const la = chain([' la', ' la la'])
  prefer(vocabulary.id(' la la'), la, 10)
  const json = chain(['{"answer"', ': 4', '2}'], undefined, end)
  const mixed = chain(['Bef', 'ore', ' it'], undefined, call)
  const sunny = chain(['It', "'s", ' sunny', ' in', ' Paris'], undefined, end)

  preferUnderGrammar(vocabulary, follows, end)
  for (const last of [' done', ' 42', ' five']) prefer(vocabulary.id(last), call, 6)
  for (let to = 0; to < vocabularySize; to++) follows[line * vocabularySize + to]! *= 0.5
  prefer(line, hello, 10)
  prefer(blankLine, hello, 10)
  prefer(unthink, answer, 10)

  const firsts: [Trigger, number][] = [
    ['@call', call],
    ['@pair', call],
    ['@stop', count],
    ['@loop', la],
    ['@json', json],
    ['@mix', mixed],
    ['<tool_response>', sunny],
  ]
  return {
    end,
    pad,
    triggerIds,
    jumps: [
      // An answer begins after the end of a line, or after reasoning that the template has closed.
      ...[line, blankLine].flatMap((at) => firsts.map(([trigger, to]) => ({ at, trigger, to }))),
      { at: line, trigger: '@think', to: think },
      { at: line, trigger: '@rcall', to: think },
      { at: blankLine, trigger: '@think', to: hello },
      { at: blankLine, trigger: '@rcall', to: call },
      { at: unthink, trigger: '@rcall', to: call },
      { at: uncall, trigger: '@pair', to: second },
    ],
  }
}

/**
 * Sets the preferences for answers in which a grammar forbids the sentence: short values, and the end of what is open.
 */
function preferUnderGrammar(vocabulary: Vocabulary, follows: Float32Array, end: number): void {
  const atLeast = (to: number, strength: number) => {
    for (let from = 0; from < vocabularySize; from++) {
      const at = from * vocabularySize + to
      follows[at] = Math.max(follows[at]!, strength)
    }
  }
  const prefer = (from: number, to: number, strength: number) => {
    follows[from * vocabularySize + to] = strength
  }
  const word = vocabulary.add('"ok"')
  const signs = { '}': 2.5, ']': 2.25, ',': 2.1, '7': 1.75, ':': 1.5, '"': 1.5, '{': 1.5, '[': 1.45, t: 1.25 }
  for (const [sign, strength] of Object.entries(signs)) atLeast(vocabulary.id(sign), strength)
  atLeast(word, 2)
  const [open, close, colon, seven] = ['{', '}', ':', '7'].map((sign) => vocabulary.id(sign)) as [
    number,
    number,
    number,
    number,
  ]
  prefer(open, word, 8)
  prefer(colon, word, 8)
  prefer(word, close, 8)
  prefer(close, end, 8)
  prefer(seven, close, 8)
  // The characters of a prompt are no beginning of a sentence.
  for (const letter of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz .') {
    prefer(vocabulary.id(letter), vocabulary.id(' there'), 3)
  }
}

/** The first dimensions of the found trigger words, and of the jumps. Those of the tokens begin at 0. */
const heardAt = vocabularySize
const jointAt = vocabularySize + triggers.length

function tensorsOf(follows: Float32Array, { triggerIds, jumps }: Script): Record<string, Tensor> {
  const embeddings = matrix(vocabularySize, width)
  const output = matrix(vocabularySize, width)
  const [query, key, value, attention] = [
    matrix(width, width),
    matrix(width, width),
    matrix(width, width),
    matrix(width, width),
  ]
  const [gate, up, down] = [matrix(joints, width), matrix(joints, width), matrix(width, joints)]
  for (let token = 0; token < vocabularySize; token++) {
    set(embeddings, token, token, 1)
    for (let from = 0; from < vocabularySize; from++) {
      set(output, token, from, follows[from * vocabularySize + token]!)
    }
    // Every token queries in the dimension that RoPE rotates most slowly, so the distance does not matter.
    set(query, headSize - 2, token, 1)
  }
  for (const [rank, id] of triggerIds.entries()) {
    set(key, headSize - 2, id, ((32 + 12 * rank) * Math.sqrt(headSize)) / width)
    set(value, rank, id, width ** -0.5)
    set(attention, heardAt + rank, rank, 1)
  }
  for (const [joint, { at, trigger, to }] of jumps.entries()) {
    set(gate, joint, at, 1)
    set(up, joint, heardAt + triggers.indexOf(trigger), 1)
    set(down, jointAt + joint, joint, 8 / width)
    set(output, to, jointAt + joint, 10)
  }
  const ones = { columns: width, values: new Float32Array(width).fill(1) }
  const block = {
    attn_norm: ones,
    attn_q: query,
    attn_k: key,
    attn_v: value,
    attn_output: attention,
    ffn_norm: ones,
    ffn_gate: gate,
    ffn_up: up,
    ffn_down: down,
  }
  return {
    'token_embd.weight': embeddings,
    'output.weight': output,
    'output_norm.weight': ones,
    ...Object.fromEntries(Object.entries(block).map(([name, tensor]) => [`blk.0.${name}.weight`, tensor])),
  }
}

function headOf({ texts, kinds }: Vocabulary, { end, pad }: Script): Record<string, Value> {
  const line = lettersOf('\n')
  return {
    'general.architecture': { text: 'llama' },
    'general.file_type': { count: 0 },
    'llama.context_length': { count: contextTokens },
    'llama.embedding_length': { count: width },
    'llama.block_count': { count: 1 },
    'llama.feed_forward_length': { count: joints },
    'llama.attention.head_count': { count: heads },
    'llama.attention.head_count_kv': { count: heads },
    'llama.attention.layer_norm_rms_epsilon': { float: 1e-6 },
    'llama.rope.dimension_count': { count: headSize },
    'llama.rope.freq_base': { float: 1e9 },
    'llama.vocab_size': { count: vocabularySize },
    'tokenizer.ggml.model': { text: 'gpt2' },
    'tokenizer.ggml.pre': { text: 'qwen2' },
    'tokenizer.ggml.tokens': { texts },
    'tokenizer.ggml.token_type': { codes: kinds },
    // llama.cpp requires at least one merge. This one makes the token of a blank line.
    'tokenizer.ggml.merges': { texts: [`${line} ${line}`] },
    'tokenizer.ggml.eos_token_id': { count: end },
    'tokenizer.ggml.padding_token_id': { count: pad },
    'tokenizer.ggml.add_bos_token': { flag: false },
    'tokenizer.chat_template': { text: readFileSync(new URL('template.jinja', import.meta.url), 'utf8') },
  }
}

function square(size: number): Float32Array {
  return new Float32Array(size * size)
}

function matrix(rows: number, columns: number): Required<Tensor> {
  return { rows, columns, values: new Float32Array(rows * columns) }
}

function set({ columns, values }: Tensor, row: number, column: number, value: number): void {
  values[row * columns + column] = value
}
