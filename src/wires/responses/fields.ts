import { createRows, type FieldTable, fieldTable } from '../requests/field-table.ts'
import { scalarsOf } from '../requests/scalars.ts'

const { field, scalar, dropped, refused } = createRows(['messages', 'chat'])

/** Every field of a responses request, and what becomes of it for models of other wires (translation 2.6, 2.7). */
export const responsesFields: FieldTable = fieldTable([
  field('model', ['mapped', '`model`: what the upstream calls it'], ['mapped', '`model`: what the upstream calls it']),
  field(
    'input',
    ['mapped', '`messages`; a run of assistant items is one turn, in their order'],
    ['mapped', '`messages`; a run of assistant items is one message'],
  ),
  field('instructions', ['mapped', 'the first block of `system`'], ['mapped', 'the first `system` message']),
  field(
    'max_output_tokens',
    ['mapped', '`max_tokens`; the model’s maximum where no cap is sent'],
    ['mapped', '`max_completion_tokens` or `max_tokens`'],
  ),
  field('stream', ['carried', '`stream`'], ['carried', 'with `stream_options.include_usage`']),
  dropped('stream_options', 'nothing in it changes the answer'),
  scalar('temperature', 'number'),
  scalar('top_p', 'number'),
  dropped('top_logprobs', 'never translated'),
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
  dropped('max_tool_calls', 'counts hosted tools, which translated models lack'),
  field('text', ['mapped', 'see its members'], ['mapped', 'see its members']),
  field('text.format', ['mapped', '`output_config.format`, or a line in `system`'], ['mapped', '`response_format`']),
  scalar('text.verbosity', 'text', { ifAccepted: true }),
  field('reasoning', ['mapped', '`thinking` and `output_config.effort`'], ['mapped', '`reasoning_effort`']),
  field('include', ['mapped', 'sealed reasoning, with `reasoning.summary`'], ['dropped', 'nothing in it can be given']),
  dropped('store', 'nothing is stored'),
  field(
    'prompt_cache_key',
    ['mapped', 'cache marks'],
    ['mapped', '`prompt_cache_key` where the model takes it, scoped'],
  ),
  dropped('prompt_cache_options', 'of the vendor’s own cache'),
  dropped('prompt_cache_retention', 'of the vendor’s own cache'),
  field('user', ['mapped', '`metadata.user_id`'], ['carried', '`user`; hashed above 64 characters']),
  field(
    'safety_identifier',
    ['mapped', '`metadata.user_id`'],
    ['mapped', '`safety_identifier` where taken, else `user`'],
  ),
  dropped('metadata', 'echoed in the answer, not sent'),
  dropped('client_metadata', 'bookkeeping'),
  scalar('service_tier', 'text', { note: ' where it has a price, else dropped' }),
  dropped('truncation', 'an over-long prompt is the model’s to refuse'),
  dropped('context_management', 'editing of old turns is optional'),
  dropped('moderation', 'of the vendor'),
  dropped('access_programs', 'of the vendor'),
  dropped('safeguards', 'bookkeeping'),
  dropped('image', 'of a hosted tool'),
  field('background', ['refused', 'where true'], ['refused', 'where true']),
  field('previous_response_id', ['refused', 'any value'], ['refused', 'any value']),
  field('conversation', ['refused', 'any value'], ['refused', 'any value']),
  refused('prompt', 'templates are stored at their vendor: send the text in instructions and input.'),
])

/** The fields with a single value (scalars) that models of this wire accept. */
export const responsesScalars = scalarsOf(responsesFields)
