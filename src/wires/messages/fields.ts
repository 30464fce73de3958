import { createRows, type FieldTable, fieldTable } from '../requests/field-table.ts'
import { scalarsOf } from '../requests/scalars.ts'

const { field, scalar, dropped, refused } = createRows(['chat', 'responses'])

/** Every field of a messages request, and what becomes of it for models of other wires (translation 2.2, 2.3). */
export const messagesFields: FieldTable = fieldTable([
  field('model', ['mapped', '`model`: what the upstream calls it'], ['mapped', '`model`: what the upstream calls it']),
  field(
    'max_tokens',
    ['mapped', '`max_completion_tokens` or `max_tokens`, lowered to the model’s maximum'],
    ['mapped', '`max_output_tokens`, lowered to the model’s maximum, at least 16'],
  ),
  field(
    'messages',
    ['mapped', '`messages`; results become `tool` messages directly behind their calls'],
    ['mapped', '`input` items in the order of the blocks'],
  ),
  field('system', ['mapped', 'the first `system` message'], ['mapped', '`instructions`']),
  field('stream', ['carried', 'with `stream_options.include_usage`'], ['carried', '`stream`']),
  scalar('temperature', 'number', { range: [0, 1], note: ', at most 1; dropped under thinking' }),
  scalar('top_p', 'number', { note: '; dropped under thinking' }),
  scalar('top_k', 'number'),
  field(
    'stop_sequences',
    ['mapped', '`stop`; what is more than the model takes is enforced by the gateway'],
    ['mapped', 'enforced by the gateway'],
  ),
  field('tools', ['mapped', 'nested functions'], ['mapped', 'flat functions with an explicit `strict`']),
  field(
    'tool_choice',
    ['mapped', '`tool_choice` and `parallel_tool_calls`'],
    ['mapped', '`tool_choice` and `parallel_tool_calls`'],
  ),
  field('output_config.format', ['mapped', '`response_format`'], ['mapped', '`text.format`']),
  field('output_config.effort', ['mapped', '`reasoning_effort`'], ['mapped', '`reasoning.effort`']),
  dropped('output_config.task_budget', 'no other wire has it'),
  field('output_config', ['mapped', 'see its members'], ['mapped', 'see its members']),
  field('output_format', ['mapped', 'an old name of `output_config.format`'], ['mapped', 'likewise']),
  field('thinking', ['mapped', '`reasoning_effort`'], ['mapped', '`reasoning.effort` and `reasoning.summary`']),
  field('user', ['carried', '`user`; hashed above 64 characters'], ['mapped', '`safety_identifier` or `user`']),
  field(
    'metadata',
    ['mapped', '`user_id` becomes `user`'],
    ['mapped', '`user_id` becomes `safety_identifier` or `user`'],
  ),
  dropped('cache_control', 'marks exist on the messages wire only; prefixes stay identical anyway'),
  dropped('service_tier', 'the model’s default holds'),
  scalar('speed', 'text', { name: 'service_tier', note: ' where it has a price, else dropped' }),
  dropped('inference_geo', 'the model’s default holds'),
  dropped('context_management', 'editing of old turns is optional'),
  dropped('compaction', 'compaction of old turns is optional'),
  dropped('diagnostics', 'bookkeeping'),
  dropped('safeguards', 'bookkeeping'),
  dropped('billing_policy', 'bookkeeping'),
  dropped('fallbacks', 'the gateway chooses the upstream'),
  dropped('fallback_credit_token', 'bookkeeping'),
  dropped('thread', 'refused, on every model, unless it is `false`: nothing is stored'),
  dropped('container', 'refused where it names one: nothing is stored'),
  refused(
    'mcp_servers',
    'this model has no MCP connector: remove the field and declare the functions in tools.',
    'tools of the provider',
  ),
])

/** The scalars (fields with a single value) that models of this wire accept. */
export const messagesScalars = scalarsOf(messagesFields)
