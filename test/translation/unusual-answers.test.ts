import assert from 'node:assert/strict'
import test from 'node:test'
import { type ClientWire, pump, pumpJson, type Told, wires } from './pump.ts'
import {
  added,
  argumentsDelta,
  blockDelta,
  blockStart,
  blockStop,
  completion,
  counts,
  created,
  delta,
  done,
  events,
  functionCall,
  itemDone,
  message,
  messageDelta,
  messageStart,
  messageStop,
  raw,
  reason,
  terminal,
  text,
  textBlock,
  textDelta,
  usage,
} from './upstreams.ts'

/*
 * Answers outside the dialect, on the three model wires, as JSON and streamed. What has one reading is read; an answer of which
 * nothing can be read fails; a call that cannot be read is no ordinary end (FID-2, FID-3, ruling Y5). Media become one sentence
 * (FID-9, ruling Y9).
 */

type Json = Record<string, unknown>
type Script = { json?: string; stream?: string }

const clientsOf: Record<ClientWire, ClientWire[]> = {
  chat: ['messages', 'responses'],
  messages: ['chat', 'responses'],
  responses: ['messages', 'chat'],
}

const chunk = (choice: Json) =>
  raw(JSON.stringify({ id: 'chatcmpl-hosted-7', object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] }))
const chatEnd = (finish = 'stop') => reason(finish) + usage(counts(9, 2)) + done
const chatChoice = (choice: Json) =>
  completion({}, 'stop', { choices: [{ index: 0, finish_reason: 'stop', ...choice }] })
/** A single choice, without its number, in place of the list. */
const alone = (said: Json, finish = 'stop'): Script[] => [
  { json: completion({}, finish, { choices: { message: said, finish_reason: finish } }) },
  { stream: raw(JSON.stringify({ choices: { delta: said } })) + chatEnd(finish) },
  { stream: raw(JSON.stringify({ choices: { message: said, finish_reason: finish } })) + done },
]
/** The same message as JSON, as one delta, and as `message` in a chunk. */
const chat = (said: Json, finish = 'stop'): Script[] => [
  { json: completion(said, finish) },
  { stream: delta({ role: 'assistant', ...said }) + chatEnd(finish) },
  { stream: chunk({ message: { role: 'assistant', ...said } }) + chatEnd(finish) },
]

const messagesBody = (content: unknown, stop_reason = 'end_turn') =>
  JSON.stringify({
    ...{ id: 'msg_hosted', type: 'message', role: 'assistant', model: 'hosted-model', content, stop_reason },
    usage: { input_tokens: 9, output_tokens: 2 },
  })
const early = (content: unknown, stop_reason = 'end_turn') =>
  messageStart().replace('"content":[]', `"content":${JSON.stringify(content)}`) +
  messageDelta(stop_reason) +
  messageStop
const messages = (content: unknown, stop_reason?: string): Script[] => [
  { json: messagesBody(content, stop_reason) },
  { stream: early(content, stop_reason) },
]
const messagesBlocks = (...blocks: Json[]): Script[] => [
  ...messages(blocks),
  {
    stream:
      messageStart() +
      blocks.map((block, place) => blockStart(place, block) + blockStop(place)).join('') +
      messageDelta('end_turn') +
      messageStop,
  },
]

const responsesBody = (rest: Json) => JSON.stringify({ ...(terminal('completed')['response'] as Json), ...rest })
const onlyTerminal = (rest: Json) => events(created, terminal('completed', [], rest))
const responses = (...items: unknown[]): Script[] => [
  { json: responsesBody({ output: items }) },
  { stream: onlyTerminal({ output: items }) },
  { stream: events(created, ...items.map((item, place) => itemDone(place, item as Json)), terminal('completed')) },
  {
    stream: events(
      created,
      ...items.flatMap((item, place) => [added(place, item as Json), itemDone(place, item as Json)]),
      terminal('completed', items as Json[]),
    ),
  },
]
const said = (content: unknown): Json => ({ id: 'msg_hosted_0', type: 'message', role: 'assistant', content })

/** Runs an answer towards both other wires, as a stream and as JSON. */
function play(wire: ClientWire, { json, stream }: Script): { client: ClientWire; told: Told }[] {
  return clientsOf[wire].map((client) => {
    const options = { showsReasoning: true }
    const told = json === undefined ? pump(client, wire, stream!, options) : pumpJson(client, wire, json, options)
    assert.deepEqual(wires[client].check(told.text), [], told.text)
    return { client, told }
  })
}

type Said = { text: string; reasoning: string; calls: string[]; reason: string }

/** What an answer said, whatever the client's wire; undefined if it failed, and then on each. */
function saidOf(wire: ClientWire, script: Script): Said | undefined {
  const all = play(wire, script).map(({ told }): Said | undefined => {
    if (!('answer' in (told.outcome as object))) return undefined
    const { answer } = told.outcome as Extract<Told['outcome'], { answer: unknown }>
    const of = (kind: string) => answer.blocks.filter(({ block }) => block.kind === kind).map((one) => one.text)
    const calls = answer.blocks.flatMap((one) =>
      one.block.kind === 'tool_call' ? [`${one.block.name} ${one.text}`] : [],
    )
    return {
      text: of('text').join('') + of('refusal').join(''),
      reasoning: of('reasoning').join(''),
      calls,
      reason: answer.reason,
    }
  })
  assert.deepEqual(all[1], all[0])
  return all[0]
}

const readable: Record<ClientWire, Script[]> = {
  chat: [
    ...chat({ content: 'ok' }),
    ...chat({ content: ['ok'] }),
    ...alone({ content: 'ok' }),
    ...chat({ content: ['o', 'k'] }),
    ...chat({ content: [{ type: 'text', text: 'o' }, { text: 'k' }] }),
    ...chat({ content: { type: 'text', text: 'ok' } }),
    ...chat({ content: [{ type: 'output_text', text: 'ok' }] }),
    ...chat({ content: [{ type: 'input_text', text: 'ok' }] }),
    ...chat({ content: [{ type: 'text', text: { value: 'ok', annotations: [] } }] }),
    ...chat({ content: [{ type: 'text', content: 'ok' }] }),
    ...chat({ content: null, text: 'ok' }),
    ...[[], {}].flatMap((content) => chat({ content, refusal: 'ok' })),
    ...chat({ content: null, audio: { id: 'a', transcript: 'ok', data: 'AAAA', expires_at: 1 } }),
    ...chat({ content: [{ type: 'audio', audio: { transcript: 'ok', data: 'AAAA' } }] }),
    ...chat({ content: [{ type: 'output_audio', transcript: 'ok', data: 'AAAA' }] }),
    ...chat({ content: [{ audio: { text: 'ok', data: 'AAAA' } }] }),
    ...chat({ content: [{ type: 'reference', reference_ids: [1] }, 'ok'] }),
    // An entry that says nothing of a call is none, unless the answer says that it ends with one.
    ...[
      [{ index: 0, function: { arguments: '' } }],
      [{}],
      [null],
      [{ type: 'function', function: { name: '' } }],
    ].flatMap((tool_calls) => chat({ content: 'ok', tool_calls })),
    { json: chatChoice({ text: 'ok' }) },
    { json: chatChoice({ message: 'ok' }) },
    { json: chatChoice({ delta: { content: 'ok' } }) },
    { stream: chunk({ text: 'o' }) + chunk({ text: 'k' }) + chatEnd() },
    { stream: chunk({ delta: {}, text: 'ok' }) + chatEnd() },
    { stream: chunk({ delta: 'ok' }) + chatEnd() },
    { stream: chunk({ message: { content: 'o' } }) + chunk({ message: { content: 'k' } }) + chatEnd() },
    // A whole message behind its deltas repeats them.
    { stream: text('o') + text('k') + chunk({ delta: {}, message: { content: 'ok' }, finish_reason: 'stop' }) + done },
    // Deltas that say nothing, or reasoning alone, take nothing from it.
    ...[
      { content: '', tool_calls: [] },
      { annotations: [] },
      { annotations: [{ type: 'url_citation' }] },
      { name: 'bot' },
      { content: [], function_call: {}, audio: {} },
      { reasoning_content: 'hm' },
    ].flatMap((silent) => [
      { stream: delta({ role: 'assistant', ...silent }) + chunk({ message: { content: 'ok' } }) + chatEnd() },
      { stream: delta({ role: 'assistant', ...silent }) + chunk({ text: 'o' }) + chunk({ text: 'k' }) + chatEnd() },
      { stream: chunk({ delta: { role: 'assistant', ...silent } }) + chunk({ delta: {}, text: 'ok' }) + chatEnd() },
    ]),
    {
      stream:
        delta({ audio: { id: 'a', transcript: '' } }) +
        delta({ audio: { data: 'AAAA' } }) +
        delta({ audio: { transcript: 'o' } }) +
        delta({ audio: { transcript: 'k' } }) +
        chatEnd(),
    },
  ],
  messages: [
    ...messages('ok'),
    ...messages(['ok']),
    ...messages({ type: 'text', text: 'ok' }),
    ...messagesBlocks({ type: 'text', text: 'ok' }),
    ...messagesBlocks({ type: 'output_text', text: 'ok' }),
    ...messagesBlocks({ type: 'input_text', text: 'ok' }),
    ...messagesBlocks({ type: 'text', content: 'ok' }),
    ...messagesBlocks({ text: 'ok' }),
    ...messagesBlocks({ type: 'refusal', refusal: 'ok' }),
    ...messagesBlocks({ type: 'reference', ids: [1] }, { type: 'text', text: 'ok' }),
    // A start that a block follows repeats nothing.
    { stream: early('no').replace('event: message_delta', `${textBlock(0, 'ok')}event: message_delta`) },
    ...['text', 'output_text', 'message', 'unheard_of'].map((type) => ({
      stream:
        messageStart() +
        blockStart(0, { type }) +
        blockDelta(0, { type: 'text_delta', text: 'o' }) +
        blockDelta(0, { type: 'text_delta', text: 'k' }) +
        blockStop(0) +
        messageDelta('end_turn') +
        messageStop,
    })),
    // A text in a provider's own work is not the model's.
    ...['mcp_tool_result', 'web_search_tool_result', 'server_tool_use', 'compaction'].map((type) => ({
      stream:
        messageStart() +
        blockStart(0, { type }) +
        blockDelta(0, { type: 'text_delta', text: 'found' }) +
        blockStop(0) +
        textBlock(1, 'ok') +
        messageDelta('end_turn') +
        messageStop,
    })),
    {
      stream:
        messageStart() +
        blockStart(0, { type: 'text', text: '' }) +
        blockDelta(0, { type: 'text', text: 'o' }) +
        blockDelta(0, { text: 'k' }) +
        blockStop(0) +
        messageDelta('end_turn') +
        messageStop,
    },
  ],
  responses: [
    ...responses(message(0, 'ok')),
    ...responses(said('ok')),
    ...responses(said(['ok'])),
    ...responses(said([{ type: 'text', text: 'ok' }])),
    ...responses(said([{ type: 'input_text', text: 'ok' }])),
    ...responses(said({ type: 'output_text', text: 'ok' })),
    ...responses(said([{ type: 'refusal', refusal: 'ok' }])),
    ...responses(said([{ type: 'output_audio', transcript: 'ok', data: 'AAAA' }])),
    ...responses({ role: 'assistant', content: 'ok' }),
    ...responses({ type: 'output_text', text: 'ok' }),
    ...responses({ type: 'text', text: 'ok' }),
    ...responses({ type: 'unheard_of' }, message(1, 'ok')),
    { json: responsesBody({ output: 'ok' }) },
    { json: responsesBody({ output: message(0, 'ok') }) },
    { json: responsesBody({ output: [], output_text: 'ok' }) },
    { json: responsesBody({ output: undefined, output_text: 'ok' }) },
    { json: responsesBody({ output: [message(0, 'ok')], output_text: 'ok' }) },
    { stream: onlyTerminal({ output_text: 'ok' }) },
    ...[said([]), said(''), said(null), said([{ type: 'output_text', text: '' }])].flatMap((empty) => [
      { json: responsesBody({ output: [empty], output_text: 'ok' }) },
      { stream: onlyTerminal({ output: [empty, empty], output_text: 'ok' }) },
      { stream: events(created, added(0, empty), added(1, empty), terminal('completed', [], { output_text: 'ok' })) },
    ]),
    ...['content_part.done', 'content_part.added'].map((type) => ({
      stream: events(
        created,
        added(0, said([])),
        { type: `response.${type}`, output_index: 0, content_index: 0, part: { type: 'output_text', text: 'ok' } },
        terminal('completed'),
      ),
    })),
    {
      stream: events(
        created,
        added(0, said([])),
        { type: 'response.audio.transcript.delta', delta: 'o' },
        { type: 'response.audio.transcript.delta', delta: 'k' },
        { type: 'response.audio.delta', delta: 'AAAA' },
        terminal('completed'),
      ),
    },
    { stream: events(created, { ...textDelta(0, ''), delta: { text: 'ok' } }, terminal('completed')) },
  ],
}

const unreadable: Record<ClientWire, Script[]> = {
  chat: [
    ...chat({ content: [{ type: 'unheard_of', body: 'ok' }] }),
    ...chat({ content: { body: 'ok' } }),
    ...chat({ content: [5] }),
    ...chat({ content: 5 }),
    ...['profile_note', 'imagery', 'filed', 'documentary'].flatMap((type) => chat({ content: [{ type, body: 'ok' }] })),
    ...chat({ content: [{ type: 'text', body: 'ok' }] }),
    ...chat({ reasoning_content: 'hm', content: [{ type: 'unheard_of' }] }),
  ],
  messages: [
    ...messages(5),
    ...messages([5]),
    ...messagesBlocks({}),
    ...messagesBlocks({ type: 'unheard_of', body: 'ok' }),
    ...messagesBlocks({ type: 'text', body: 'ok' }),
    ...messagesBlocks({ type: 'thinking', thinking: 'hm', signature: '' }, { type: 'unheard_of' }),
    ...[{ type: 'text_delta', text: 5 }, { type: 'text_delta', text: { body: 'ok' } }, 'ok', ['ok'], 5].map(
      (piece) => ({
        stream:
          messageStart() +
          blockStart(0, { type: 'text', text: '' }) +
          blockDelta(0, piece as Json) +
          blockStop(0) +
          messageDelta('end_turn') +
          messageStop,
      }),
    ),
  ],
  responses: [
    ...responses({ type: 'unheard_of', body: 'ok' }),
    ...responses(said([{ type: 'unheard_of', body: 'ok' }])),
    ...responses(said(5)),
    { json: responsesBody({ output: 5 }) },
    ...[5, ['a'], true].flatMap((item) => responses(item)),
    { json: responsesBody({ output: [null] }) },
    { stream: onlyTerminal({ output: [null] }) },
    ...responses({}),
    ...responses({ id: 'msg_0' }),
    ...responses({ type: 'message', role: 'assistant' }),
    { json: responsesBody({ output: {} }) },
    ...responses(said([{ type: 'output_text', body: 'ok' }])),
  ],
}

const f = { name: 'f', arguments: '{"a":1}' }
/** Calls beside the message or the delta of a choice, which says nothing, or is not there. */
const besides = (calls: Json): Script[] => [
  { json: chatChoice({ message: { role: 'assistant', content: null }, ...calls }) },
  { json: chatChoice({ message: { role: 'assistant', content: '', tool_calls: [] }, ...calls }) },
  { stream: chunk({ delta: {}, ...calls }) + chatEnd('tool_calls') },
  { stream: chunk({ delta: { role: 'assistant' }, ...calls, finish_reason: 'tool_calls' }) + done },
]
const readableCalls: Record<ClientWire, Script[]> = {
  chat: [
    ...chat({ tool_calls: [{ id: 'c', type: 'function', function: f }] }, 'tool_calls'),
    ...[[], {}].flatMap((content) => chat({ content, tool_calls: [{ id: 'c', function: f }] }, 'tool_calls')),
    ...chat({ tool_calls: [{ id: 'c', type: 'function', ...f }] }, 'tool_calls'),
    ...alone({ tool_calls: [{ id: 'c', function: { ...f, arguments: { a: 1 } } }] }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', function: { name: 'f', arguments: '' }, arguments: '{"a":1}' }] }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' }, input: { a: 1 } }] }, 'tool_calls'),
    ...chat(
      { content: [{ type: 'tool_use', name: 'g', input: {} }], tool_calls: [{ id: 'c', function: f }] },
      'tool_calls',
    ),
    ...chat({ tool_calls: { id: 'c', type: 'function', function: f } }, 'tool_calls'),
    ...chat({ tool_calls: { id: 'c', ...f } }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', function: 'f', arguments: '{"a":1}' }] }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', function: { name: 'f' }, arguments: '{"a":1}' }] }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', function: { ...f, arguments: { a: 1 } } }] }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', name: 'f', arguments: { a: 1 } }] }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', name: 'f', input: { a: 1 } }] }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', function: { name: 'f', parameters: { a: 1 } } }] }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', name: 'f', args: { a: 1 } }] }, 'tool_calls'),
    ...chat({ tool_calls: [{ id: 'c', function: { name: 'f', arguments: {} }, input: '{"a":1}' }] }, 'tool_calls'),
    ...chat({ function_call: f }, 'function_call'),
    ...chat({ function_call: { ...f, arguments: { a: 1 } } }, 'function_call'),
    ...chat({ content: [{ type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } }] }, 'tool_calls'),
    ...chat({ content: [{ type: 'function_call', id: 'c', ...f }] }, 'stop'),
    ...[
      { tool_calls: [{ index: 0, id: 'c', function: f }] },
      { tool_calls: [{ id: 'c', name: 'f', input: { a: 1 } }] },
    ].flatMap(besides),
    ...[{ function_call: f }, { function_call: { ...f, arguments: { a: 1 } } }].flatMap(besides),
    {
      stream:
        delta({ tool_calls: [{ index: 0, id: 'c', name: 'f', arguments: '{"a"' }] }) +
        delta({ tool_calls: [{ index: 0, arguments: ':1}' }] }) +
        chatEnd('tool_calls'),
    },
  ],
  messages: [
    ...messagesBlocks({ type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } }),
    ...messagesBlocks({ type: 'tool_use', id: 'c', name: 'f', input: '{"a":1}' }),
    ...messagesBlocks({ type: 'tool_use', id: 'c', ...f }),
    ...messagesBlocks({ type: 'tool_use', id: 'c', name: 'f', arguments: { a: 1 } }),
    ...messagesBlocks({ type: 'tool_use', id: 'c', name: 'f', input: {}, args: { a: 1 } }),
    ...messagesBlocks({ type: 'function_call', id: 'c', ...f }),
    ...messagesBlocks({ type: 'tool_call', id: 'c', function: f }),
    ...messages({ type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } }),
  ],
  responses: [
    ...responses(functionCall(0, 'f', '{"a":1}')),
    ...responses({ ...functionCall(0, 'f', ''), arguments: { a: 1 } }),
    ...responses({ id: 'fc_0', type: 'function_call', call_id: 'c', function: f }),
    ...responses({ id: 'fc_0', type: 'tool_call', call_id: 'c', ...f }),
    ...responses({ id: 'fc_0', call_id: 'c', ...f }),
    ...responses({ id: 'fc_0', type: 'function_call', call_id: 'c', name: 'f', input: { a: 1 } }),
    ...responses({ id: 'fc_0', type: 'tool_use', call_id: 'c', name: 'f', args: { a: 1 } }),
    { json: responsesBody({ output: functionCall(0, 'f', '{"a":1}') }) },
  ],
}

const brokenCalls: Record<ClientWire, Script[]> = {
  chat: [
    ...chat({ tool_calls: [{ id: 'c', type: 'function', tool: 'f', body: '{}' }] }, 'tool_calls'),
    ...chat({ content: 'Look.', tool_calls: [{ id: 'c', type: 'function' }] }, 'tool_calls'),
    ...chat({ content: 'Look.', tool_calls: [{ id: 'c', function: { name: '', arguments: '{}' } }] }, 'stop'),
    ...chat({ content: 'Look.', tool_calls: ['f({})'] }, 'tool_calls'),
    ...chat({ content: 'Look.', tool_calls: [{}] }, 'tool_calls'),
    ...chat({ content: 'Look.', tool_calls: [null] }, 'tool_calls'),
    ...[[null], [{}], [{ index: 0, function: { arguments: '' } }]].flatMap((tool_calls) => chat({ tool_calls })),
    ...chat({ content: 'Look.', tool_calls: 'f' }, 'tool_calls'),
    ...chat(
      { content: 'Look.', tool_calls: [{ function: f }, { id: 'd', function: { arguments: '{}' } }] },
      'tool_calls',
    ),
    ...chat({ content: 'Look.', function_call: { arguments: '{}' } }, 'function_call'),
  ],
  messages: [
    ...messagesBlocks({ type: 'text', text: 'Look.' }, { type: 'tool_use', id: 'c', input: { a: 1 } }),
    ...messagesBlocks({ type: 'tool_use', id: 'c', name: ' ', input: {} }),
  ],
  responses: [
    ...responses(message(0, 'Look.'), { id: 'fc_1', type: 'function_call', call_id: 'c', arguments: '{}' }),
    ...responses({ id: 'fc_0', type: 'custom_tool_call', call_id: 'c', name: 'f', input: 'x' }),
    { stream: events(created, argumentsDelta(0, '{}'), terminal('completed')) },
  ],
}

const [image, two, audio] = ['an image', '2 images', 'audio'].map(
  (what) => `[Left out of this answer, because it cannot be sent over this API: ${what}.]`,
) as [string, string, string]
const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(400)}` } }
const other = { type: 'image_url', image_url: { url: `data:image/png;base64,${'B'.repeat(400)}` } }
const drawn = { id: 'ig_0', type: 'image_generation_call', status: 'completed', result: 'AAAA' }
const media: Record<ClientWire, [told: string, scripts: Script[]][]> = {
  chat: [
    [`ok${image}`, chat({ content: 'ok', images: [picture] })],
    [image, chat({ content: '', images: [picture] })],
    [`ok${two}`, chat({ content: 'ok', images: [picture, other] })],
    [`ok${image}`, chat({ content: [{ type: 'text', text: 'ok' }, picture] })],
    [audio, chat({ content: null, audio: { id: 'a', data: 'AAAA', transcript: null } })],
    [audio, chat({ content: [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }] })],
    [audio, chat({ content: [{ type: 'audio', audio: 'AAAA' }] })],
    [audio, chat({ content: [{ type: 'output_audio', content: 'AAAA' }] })],
    [audio, chat({ content: null, audio: 'AAAA' })],
    [`ok${audio}`, chat({ content: 'ok', audio: 'AAAA' })],
    ...['image', 'video', 'file'].map((member): [string, Script[]] => [
      `ok[Left out of this answer, because it cannot be sent over this API: ${member === 'video' ? member : `${member === 'image' ? 'an' : 'a'} ${member}`}.]`,
      [{ url: 'https://files.test/1' }, 'https://files.test/1', [picture]].flatMap((one) =>
        chat({ content: 'ok', [member]: one }),
      ),
    ]),
    [audio, [{ stream: delta({ audio: 'AA' }) + delta({ audio: 'BB' }) + chatEnd() }]],
    // Some servers repeat it in their last chunk.
    [`ok${image}`, [{ stream: delta({ images: [picture] }) + text('ok') + delta({ images: [picture] }) + chatEnd() }]],
    [
      audio,
      [
        {
          stream:
            delta({ audio: { id: 'a' } }) +
            delta({ audio: { data: 'AA' } }) +
            delta({ audio: { data: 'BB' } }) +
            chatEnd(),
        },
      ],
    ],
  ],
  messages: [
    [
      `ok${image}`,
      messagesBlocks({ type: 'text', text: 'ok' }, { type: 'image', source: { type: 'base64', data: 'AAAA' } }),
    ],
    [image, messages({ type: 'image', source: { type: 'base64', data: 'AAAA' } })],
  ],
  responses: [
    [`ok${image}`, responses(drawn, message(1, 'ok'))],
    [image, responses(drawn)],
    [two, responses(drawn, { ...drawn, id: 'ig_1', result: 'BBBB' })],
    [
      `ok${image}`,
      responses(
        said([
          { type: 'output_text', text: 'ok' },
          { type: 'output_image', image_url: 'data:image/png;base64,AAAA' },
        ]),
      ),
    ],
    [audio, responses(said([{ type: 'output_audio', data: 'AAAA' }]))],
    [audio, [{ stream: events(created, { type: 'response.audio.delta', delta: 'AAAA' }, terminal('completed')) }]],
  ],
}

for (const wire of ['chat', 'messages', 'responses'] as const) {
  for (const [place, script] of readable[wire].entries()) {
    test(`FID-2 Y5 content in an unusual form is read (${wire} model, form ${place})`, () => {
      assert.deepEqual(
        { ...saidOf(wire, script), reasoning: '' },
        { text: 'ok', reasoning: '', calls: [], reason: 'end' },
      )
    })
  }
  for (const [place, script] of unreadable[wire].entries()) {
    test(`FID-2 Y5 unreadable content fails the answer, and is not an empty success (${wire} model, form ${place})`, () => {
      assert.equal(saidOf(wire, script), undefined)
    })
  }
  for (const [place, script] of readableCalls[wire].entries()) {
    test(`FID-3 Y5 a call in an unusual form is read (${wire} model, form ${place})`, () => {
      assert.deepEqual(saidOf(wire, script), { text: '', reasoning: '', calls: ['f {"a":1}'], reason: 'calls' })
    })
  }
  for (const [place, script] of brokenCalls[wire].entries()) {
    test(`FID-3 Y5 an unreadable call never ends normally (${wire} model, form ${place})`, () => {
      assert.equal(saidOf(wire, script), undefined)
    })
  }
  for (const [words, scripts] of media[wire]) {
    for (const [place, script] of scripts.entries()) {
      test(`FID-9 Y9 media become a sentence and are billed as reported: ${words} (${wire} model, form ${place})`, () => {
        assert.equal(saidOf(wire, script)?.text, words)
        for (const { told } of play(wire, script)) assert.equal(told.usage.outputTokens, 2)
      })
    }
  }
}

test('FID-3 Y5 digits of arguments are kept exactly, inside and beside the function object', () => {
  const args = '{"n":12345678901234567890}'
  for (const call of [
    `{"id":"c","name":"f","arguments":${args}}`,
    `{"id":"c","function":{"name":"f","arguments":${args}}}`,
  ]) {
    const body = completion({ tool_calls: 'HERE' }, 'tool_calls').replace('"HERE"', `[${call}]`)
    assert.deepEqual(saidOf('chat', { json: body })?.calls, [`f ${args}`])
  }
})

test('A38 A62 an answer that is empty on its wire stays an empty answer', () => {
  for (const [wire, script] of [
    ['chat', { json: completion({ content: null, tool_calls: [], audio: null, images: [] }) }],
    ['chat', { json: completion({ content: '', tool_calls: null, refusal: null, function_call: null }, 'tool_calls') }],
    ['chat', { stream: delta({ role: 'assistant', content: '' }) + chatEnd('tool_calls') }],
    ['messages', { json: messagesBody([]) }],
    [
      'messages',
      { json: messagesBody([{ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }], 'pause_turn') },
    ],
    ['responses', { json: responsesBody({ output: [] }) }],
    ['responses', { json: responsesBody({ output: [said([])] }) }],
    ['responses', { json: responsesBody({ output: [{ type: 'web_search_call', id: 'ws', status: 'completed' }] }) }],
  ] as [ClientWire, Script][]) {
    const { text: words, calls } = saidOf(wire, script)!
    assert.deepEqual([words, calls], ['', []])
  }
})

test('Y5 a whole message after reasoning deltas repeats them, and adds its text', () => {
  const whole = chunk({ message: { reasoning_content: 'hm', content: 'ok' } })
  for (const first of [{ reasoning_content: 'hm' }, { audio: { id: 'a' } }]) {
    const { text: words, reasoning } = saidOf('chat', { stream: delta(first) + whole + chatEnd() })!
    assert.deepEqual([words, reasoning], ['ok', 'hm'])
  }
})

test('FID-3 Y5 a call without a name that was cut by a cap is left out', () => {
  const script =
    delta({ content: 'Look.', tool_calls: [{ index: 0, id: 'c', function: { name: '' } }] }) + chatEnd('length')
  assert.deepEqual(saidOf('chat', { stream: script }), {
    text: 'Look.',
    reasoning: '',
    calls: [],
    reason: 'max_tokens',
  })
})
