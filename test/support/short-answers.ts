import type { ModelWire } from '../../src/catalog/wire-names.ts'

/** A whole answer of a model on each wire, which was cut after 16 tokens. */
export const shortAnswers: Readonly<Record<ModelWire, object>> = {
  messages: {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'up', stop_reason: 'max_tokens', stop_sequence: null },
    ...{ content: [{ type: 'text', text: 'Hello' }], usage: { input_tokens: 9, output_tokens: 16 } },
  },
  // A model that reasons may use all its tokens for that, so the answer is empty.
  chat: {
    ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'up' },
    choices: [{ index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'length' }],
    usage: { prompt_tokens: 9, completion_tokens: 16, total_tokens: 25 },
  },
  responses: {
    ...{ id: 'resp_1', object: 'response', created_at: 1, model: 'up', status: 'incomplete', error: null },
    ...{ incomplete_details: { reason: 'max_output_tokens' }, output: [] },
    usage: { input_tokens: 9, output_tokens: 16, total_tokens: 25 },
  },
}
