import { createRows, type FieldTable, fieldTable } from '../requests/field-table.ts'
import { scalarsOf } from '../requests/scalars.ts'

const { field, scalar, dropped, refused } = createRows(['messages', 'responses'])

/** Every field of a chat request, and what becomes of it for models of other wires (translation 2.4, 2.5). */
export const chatFields: FieldTable = fieldTable([
  field('model', ['mapped', '`model`: what the upstream calls it'], ['mapped', '`model`: what the upstream calls it']),
  field(
    'messages',
    ['mapped', '`system` and `messages`; neighbours of one side become one turn'],
    ['mapped', '`input` items; system and developer messages stay in place'],
  ),
  field(
    'max_completion_tokens',
    ['mapped', '`max_tokens`; the model’s maximum where no cap is sent'],
    ['mapped', '`max_output_tokens`, at least 16'],
  ),
  field(
    'max_tokens',
    ['carried', '`max_tokens`; the smaller of both caps'],
    ['mapped', '`max_output_tokens`, at least 16'],
  ),
  field('stream', ['carried', '`stream`'], ['carried', '`stream`']),
  dropped('stream_options', 'usage is always sent'),
  scalar('temperature', 'number'),
  scalar('top_p', 'number'),
  dropped('frequency_penalty', 'the wire has no such field', 'number'),
  dropped('presence_penalty', 'the wire has no such field', 'number'),
  dropped('seed', 'the wire has no such field', 'number'),
  dropped('logit_bias', 'the wire has no such field'),
  dropped('logprobs', 'never translated'),
  dropped('top_logprobs', 'never translated'),
  field('stop', ['mapped', '`stop_sequences`'], ['mapped', 'enforced by the gateway']),
  field('tools', ['mapped', '`tools` with `input_schema`'], ['mapped', 'flat functions with an explicit `strict`']),
  field('tool_choice', ['mapped', '`tool_choice`'], ['mapped', '`tool_choice`, flat']),
  field(
    'parallel_tool_calls',
    ['mapped', '`tool_choice.disable_parallel_tool_use` where false'],
    ['carried', '`parallel_tool_calls`, with tools'],
  ),
  field('response_format', ['mapped', '`output_config.format`, or a line in `system`'], ['mapped', '`text.format`']),
  field('reasoning_effort', ['mapped', '`thinking` and `output_config.effort`'], ['mapped', '`reasoning.effort`']),
  scalar('verbosity', 'text', { ifAccepted: true, note: ' where the model takes it' }),
  field(
    'prompt_cache_key',
    ['mapped', 'cache marks'],
    ['mapped', '`prompt_cache_key` where the model takes it, scoped'],
  ),
  dropped('prompt_cache_options', 'of the vendor’s own cache'),
  dropped('prompt_cache_retention', 'of the vendor’s own cache'),
  field('user', ['mapped', '`metadata.user_id`'], ['carried', '`user`; hashed above 64 characters']),
  field('safety_identifier', ['mapped', '`metadata.user_id`'], ['carried', '`safety_identifier` or `user`']),
  dropped('metadata', 'bookkeeping'),
  dropped('store', 'nothing is stored'),
  scalar('service_tier', 'text', { note: ' where it has a price, else dropped' }),
  dropped('prediction', 'a hint'),
  dropped('moderation', 'of the vendor'),
  field('n', ['refused', 'above 1; else nothing to send'], ['refused', 'above 1; else nothing to send']),
  field('modalities', ['refused', 'with audio; else nothing to send'], ['refused', 'with audio; else nothing to send']),
  refused('audio', 'this model has no audio output: remove the field.'),
  refused('web_search_options', 'this model has no web search: remove the field.'),
  refused('functions', 'legacy functions are not translated: declare them in tools, and remove the field.'),
  refused('function_call', 'legacy functions are not translated: remove the field, tool_choice is read.'),
])

/**
 * The scalars (fields with a single value) that models of this wire accept. A client cannot send `top_k` on this wire.
 */
export const chatScalars = scalarsOf(chatFields, [
  scalar('top_k', 'number', { ifAccepted: true, note: ' where the model takes it, else dropped' }),
])
