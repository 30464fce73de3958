import { type FieldFacts, type FieldTable, fieldTable, type Verdict } from '../fields.ts'

/** Every field of a chat request and what becomes of it on a model of the other wires (translation 2.4, 2.5). */
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
  field('stream_options', ...dropped('usage is always sent')),
  field('temperature', ['carried', '`temperature`, at most 1; dropped under thinking'], ['carried', '`temperature`']),
  field('top_p', ['carried', '`top_p`; dropped under thinking'], ['carried', '`top_p`']),
  field('frequency_penalty', ...dropped('the wire has no such field')),
  field('presence_penalty', ...dropped('the wire has no such field')),
  field('seed', ...dropped('the wire has no such field')),
  field('logit_bias', ...dropped('the wire has no such field')),
  field('logprobs', ...dropped('never translated')),
  field('top_logprobs', ...dropped('never translated')),
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
  field('verbosity', ['dropped', 'the wire has no such field'], ['mapped', '`text.verbosity`']),
  field(
    'prompt_cache_key',
    ['mapped', 'cache marks'],
    ['mapped', '`prompt_cache_key` where the model takes it, scoped'],
  ),
  field('prompt_cache_options', ...dropped('of the vendor’s own cache')),
  field('prompt_cache_retention', ...dropped('of the vendor’s own cache')),
  field('user', ['mapped', '`metadata.user_id`'], ['carried', '`user`; hashed above 64 characters']),
  field('safety_identifier', ['mapped', '`metadata.user_id`'], ['carried', '`safety_identifier` or `user`']),
  field('metadata', ...dropped('bookkeeping')),
  field('store', ...dropped('nothing is stored')),
  field('service_tier', ...dropped('the model’s default holds')),
  field('prediction', ...dropped('a hint')),
  field('moderation', ...dropped('of the vendor')),
  field('n', ['refused', 'above 1; else nothing to send'], ['refused', 'above 1; else nothing to send']),
  field('modalities', ['refused', 'with audio; else nothing to send'], ['refused', 'with audio; else nothing to send']),
  refused('audio', 'This model has no audio output: remove "audio".'),
  refused('web_search_options', 'This model has no web search: remove "web_search_options".'),
  refused('functions', 'Legacy functions are not translated: declare them in "tools".'),
  refused('function_call', 'Legacy functions are not translated: use "tool_choice".'),
])

type Fate = readonly [verdict: Verdict, note: string]

function field(name: string, messages: Fate, responses: Fate): FieldFacts {
  return {
    field: name,
    to: [
      ['messages', ...messages],
      ['responses', ...responses],
    ],
  }
}

function dropped(why: string): [Fate, Fate] {
  return [
    ['dropped', why],
    ['dropped', why],
  ]
}

function refused(name: string, refusal: string): FieldFacts {
  return { ...field(name, ['refused', 'any value'], ['refused', 'any value']), refusal }
}
