import { type FieldFacts, type FieldTable, fieldTable, type Verdict } from '../fields.ts'

/** Every field of a responses request and what becomes of it on a model of the other wires (translation 2.6, 2.7). */
export const responsesFields: FieldTable = fieldTable([
  field('model', ['mapped', '`model`: what the upstream calls it'], ['mapped', '`model`: what the upstream calls it']),
  field(
    'input',
    ['mapped', '`messages`; a run of assistant items is one turn, calls last'],
    ['mapped', '`messages`; a run of assistant items is one message'],
  ),
  field('instructions', ['mapped', 'the first block of `system`'], ['mapped', 'the first `system` message']),
  field(
    'max_output_tokens',
    ['mapped', '`max_tokens`; the model’s maximum where no cap is sent'],
    ['mapped', '`max_completion_tokens` or `max_tokens`'],
  ),
  field('stream', ['carried', '`stream`'], ['carried', 'with `stream_options.include_usage`']),
  field('stream_options', ...dropped('nothing in it changes the answer')),
  field('temperature', ['carried', '`temperature`, at most 1; dropped under thinking'], ['carried', '`temperature`']),
  field('top_p', ['carried', '`top_p`; dropped under thinking'], ['carried', '`top_p`']),
  field('top_logprobs', ...dropped('never translated')),
  field(
    'tools',
    ['mapped', 'functions; members stand in for their namespace'],
    ['mapped', 'nested functions, likewise'],
  ),
  field('tool_choice', ['mapped', '`tool_choice`'], ['mapped', '`tool_choice`, nested']),
  field(
    'parallel_tool_calls',
    ['mapped', '`tool_choice.disable_parallel_tool_use` where false'],
    ['carried', '`parallel_tool_calls`, with tools'],
  ),
  field('max_tool_calls', ...dropped('counts hosted tools, which translated models lack')),
  field('text', ['mapped', 'see its members'], ['mapped', 'see its members']),
  field('text.format', ['mapped', '`output_config.format`, or a line in `system`'], ['mapped', '`response_format`']),
  field(
    'text.verbosity',
    ['dropped', 'the wire has no such field'],
    ['carried', '`verbosity` where the model takes it'],
  ),
  field('reasoning', ['mapped', '`thinking` and `output_config.effort`'], ['mapped', '`reasoning_effort`']),
  field('include', ['mapped', 'sealed reasoning, with `reasoning.summary`'], ['dropped', 'nothing in it can be given']),
  field('store', ...dropped('nothing is stored')),
  field(
    'prompt_cache_key',
    ['mapped', 'cache marks'],
    ['mapped', '`prompt_cache_key` where the model takes it, scoped'],
  ),
  field('prompt_cache_options', ...dropped('of the vendor’s own cache')),
  field('prompt_cache_retention', ...dropped('of the vendor’s own cache')),
  field('user', ['mapped', '`metadata.user_id`'], ['carried', '`user`; hashed above 64 characters']),
  field(
    'safety_identifier',
    ['mapped', '`metadata.user_id`'],
    ['mapped', '`safety_identifier` where taken, else `user`'],
  ),
  field('metadata', ...dropped('echoed in the answer, not sent')),
  field('client_metadata', ...dropped('bookkeeping')),
  field('service_tier', ...dropped('the model’s default holds')),
  field('truncation', ...dropped('an over-long prompt is the model’s to refuse')),
  field('context_management', ...dropped('editing of old turns is optional')),
  field('moderation', ...dropped('of the vendor')),
  field('access_programs', ...dropped('of the vendor')),
  field('safeguards', ...dropped('bookkeeping')),
  field('image', ...dropped('of a hosted tool')),
  field('background', ['refused', 'where true'], ['refused', 'where true']),
  field('previous_response_id', ['refused', 'any value'], ['refused', 'any value']),
  field('conversation', ['refused', 'any value'], ['refused', 'any value']),
  {
    ...field('prompt', ['refused', 'any value'], ['refused', 'any value']),
    refusal: 'Prompt templates are stored at their vendor: send the text in "instructions" and "input".',
  },
])

type Fate = readonly [verdict: Verdict, note: string]

function field(name: string, messages: Fate, chat: Fate): FieldFacts {
  return {
    field: name,
    to: [
      ['messages', ...messages],
      ['chat', ...chat],
    ],
  }
}

function dropped(why: string): [Fate, Fate] {
  return [
    ['dropped', why],
    ['dropped', why],
  ]
}
