import { type FieldFacts, type FieldTable, fieldTable, type Verdict } from '../fields.ts'

/** Every field of a messages request and what becomes of it on a model of the other wires (translation 2.2, 2.3). */
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
  field('temperature', ['carried', '`temperature`'], ['carried', '`temperature`']),
  field('top_p', ['carried', '`top_p`'], ['carried', '`top_p`']),
  field(
    'top_k',
    ['carried', '`top_k` where the model takes it, else dropped'],
    ['dropped', 'the wire has no such field'],
  ),
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
  field('output_config.task_budget', ...dropped('no other wire has it')),
  field('output_config', ['mapped', 'see its members'], ['mapped', 'see its members']),
  field('output_format', ['mapped', 'an old name of `output_config.format`'], ['mapped', 'likewise']),
  field('thinking', ['mapped', '`reasoning_effort`'], ['mapped', '`reasoning.effort` and `reasoning.summary`']),
  field('user', ['carried', '`user`; hashed above 64 characters'], ['mapped', '`safety_identifier` or `user`']),
  field(
    'metadata',
    ['mapped', '`user_id` becomes `user`'],
    ['mapped', '`user_id` becomes `safety_identifier` or `user`'],
  ),
  field('cache_control', ...dropped('marks exist on the messages wire only; prefixes stay identical anyway')),
  field('service_tier', ...dropped('the model’s default holds')),
  field('speed', ...dropped('the model’s default holds')),
  field('inference_geo', ...dropped('the model’s default holds')),
  field('context_management', ...dropped('editing of old turns is optional')),
  field('compaction', ...dropped('compaction of old turns is optional')),
  field('diagnostics', ...dropped('bookkeeping')),
  field('safeguards', ...dropped('bookkeeping')),
  field('billing_policy', ...dropped('bookkeeping')),
  field('fallbacks', ...dropped('the gateway chooses the upstream')),
  field('fallback_credit_token', ...dropped('bookkeeping')),
  field('thread', ...dropped('refused where its type is `continue`: nothing is stored')),
  field('container', ...dropped('refused where it names one: nothing is stored')),
  {
    ...field('mcp_servers', ['refused', 'tools of the provider'], ['refused', 'tools of the provider']),
    refusal: 'This model has no MCP connector: remove "mcp_servers" and declare the functions in "tools".',
  },
])

type Fate = readonly [verdict: Verdict, note: string]

function field(name: string, chat: Fate, responses: Fate): FieldFacts {
  return {
    field: name,
    to: [
      ['chat', ...chat],
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
