import { z } from 'zod'
import { reasoningLevels } from '../inference/reasoning.ts'
import { count, filled, flag, listOf, oneOf, passage, text } from './kinds.ts'

/** Names of prices: for cache writes (usual, for 1 hour, for 12 hours), and for calls of the provider's own tools. */
const chargeNames = ['cache_write', 'cache_write_1h', 'cache_write_12h', 'calls'] as const

const level = oneOf(reasoningLevels)
const fieldNames = listOf(filled('must name a request field'), 'request fields')
const signatureCure = 'must be text of 1 to 200 characters'

/**
 * The keys of a profile as they are written in the configuration file. The type `Profile` follows from them.
 * `profiles.ts` has the value of each key for an unknown upstream, except for optional keys.
 */
export const profileKeys = z.strictObject({
  max_field: oneOf(['max_completion_tokens', 'max_tokens']).describe(
    'chat: the request field that limits the length of the output.',
  ),
  // Only an upstream's documented minimum may raise a client's limit (ruling T17).
  min_output: count(1).describe(
    'The smallest output limit that the upstream accepts. A smaller limit is raised to this number.',
  ),
  reasoning: z
    .strictObject({
      style: oneOf(['none', 'effort', 'budget', 'adaptive', 'switch', 'toggle']).describe(
        'How the request asks for reasoning. On chat, `switch` sends `thinking` (enabled or disabled) and `reasoning_effort`.',
      ),
      levels: listOf(level, 'levels').describe(
        'The reasoning levels of the model. A request for another level gets the next lower one, or the lowest.',
      ),
      default: level.optional().describe('The level at which the model reasons if the request names none.'),
      can_disable: flag.describe('Whether a request can switch reasoning off.'),
      forced_calls: flag
        .optional()
        .describe('chat, messages: whether the model can be forced to call a tool while it reasons. Default: true.'),
      json_answers: flag
        .optional()
        .describe('chat: whether the model accepts `response_format` while it reasons. Default: true.'),
      field: filled('must name a request field')
        .describe('For the style `toggle`: the boolean request field that switches reasoning on and off.')
        .optional(),
    })
    .describe('How the model reasons.'),
  // If the model hides reasoning, a cut answer's tokens cannot be estimated from its text (ruling C12). `asked`: the
  // model may reason if the request asks for it. `unless_off`: the model may reason unless the request switches it off.
  hidden_reasoning: oneOf(['never', 'asked', 'unless_off']).describe(
    'When the model may reason without showing all of its reasoning in the stream. A summary does not show all of it.',
  ),
  // In a stream, only this setting decides whether pieces repeat earlier text (ruling Y4).
  cumulative: listOf(oneOf(['arguments', 'reasoning']), 'arguments and reasoning').describe(
    'What each piece of the stream repeats from the beginning: the `arguments` of tool calls, or the `reasoning`.',
  ),
  // Reasoning of earlier turns that is sent again (`replay_thought`) goes into the same field.
  reasoning_field: oneOf(['auto', 'reasoning_content', 'reasoning', 'details']).describe(
    'chat: the field of an answer that has the reasoning text.',
  ),
  replay_thought: z
    .strictObject({
      when: oneOf(['never', 'tool_turns', 'all']).describe('The earlier turns whose reasoning is sent again.'),
      required: flag.describe(
        'Whether the upstream refuses a tool turn without its reasoning; with `all`, any turn if there are tools.',
      ),
    })
    .describe('chat: how reasoning of earlier turns is sent again.'),
  think_tags: z
    .union(
      [
        z.literal(false),
        z.strictObject({
          open: filled('must be the opening tag'),
          close: filled('must be the closing tag'),
          implicit_open: flag.prefault(false).describe('The answer starts inside the tags.'),
        }),
      ],
      { error: 'must be false, or a map with `open` and `close`' },
    )
    .describe('The tags around reasoning inside the text of an answer, or `false` for none.'),
  drops: fieldNames.describe('Request fields that the upstream rejects; they are not sent.'),
  accepts: fieldNames.describe(
    'Further request fields that this upstream accepts, although some upstreams of the wire reject them.',
  ),
  tool_choice: listOf(oneOf(['auto', 'none', 'required', 'named']), 'tool choices').describe(
    'The tool choices that the upstream accepts.',
  ),
  tool_id_style: oneOf(['free', 're64', 'len40', 'alnum9', 'fn_index']).describe(
    'The form of tool call ids that the upstream accepts.',
  ),
  tool_schemas: oneOf(['any', 'plain']).describe(
    'chat, responses: the tool schemas that the upstream accepts. `plain`: the root is an object with `properties`, every array has `items`, and Python can compile every `pattern`.',
  ),
  tool_name_max: count(11).describe('The longest tool name that the upstream accepts, in characters.'),
  tool_name_start: oneOf(['any', 'letter']).describe('The first character that a tool name may have at the upstream.'),
  // The gateway searches the answer for all stop sequences beyond this number (R-STOP).
  max_stops: count(0).describe(
    'How many stop sequences the upstream accepts. The gateway itself applies any further ones.',
  ),
  operator_in_place: oneOf(['any', 'first_only', 'message_rule']).describe(
    'Where in a conversation the upstream accepts system turns. `message_rule`: after a user turn, and not before another user turn.',
  ),
  developer_role: flag.describe('Whether the upstream accepts the role `developer`. If not, `system` is sent.'),
  images: flag.describe('Whether the upstream accepts images.'),
  files: flag.describe('Whether the upstream accepts documents.'),
  tool_images: oneOf(['native', 'follow_up']).describe(
    'Where images of a tool result are sent: in the result (`native`), or in a user turn after it (`follow_up`).',
  ),
  shape: oneOf(['schema', 'closed', 'json', 'none']).describe(
    'The structured output that the upstream enforces. `closed`: only schemas whose objects allow no further properties, and that set no limits for numbers, lengths or arrays.',
  ),
  prefill: z
    .union([z.enum(['none', 'native']), z.templateLiteral(['flag:', z.string().min(1)])], {
      error: 'must be none, native, or flag: and the name of a request field',
    })
    .describe('How the upstream continues an assistant turn at the end of the conversation.'),
  after_results: filled('must say something')
    .optional()
    .describe(
      'chat: the text of an assistant turn that is put between tool results and a user turn, for an upstream that does not accept a user turn there.',
    ),
  // Gemini's chat-compatible endpoint has signatures in `extra_content` of the call.
  call_signature: text(signatureCure)
    .min(1, { error: signatureCure })
    .max(200, { error: signatureCure })
    .optional()
    .describe(
      'chat: the text sent as the signature of each earlier tool call (Gemini), because other wires have no field for a signature.',
    ),
  null_content: oneOf(['null', 'empty']).describe('chat: the `content` of a turn that has tool calls and no text.'),
  // `remove`: the provider checks proofs of its own reasoning, and refuses other reasoning (ruling P1). `pass`: the
  // provider checks no proofs, and reads or even requires reasoning without a proof.
  unproven_thought: oneOf(['remove', 'pass']).describe(
    'messages, responses: what happens to thinking without a signature, or to reasoning without `encrypted_content`. On responses, only requests of the same wire have such reasoning.',
  ),
  string_only: flag.describe(
    'chat: whether the upstream accepts only strings as `content`. If so, text parts are joined.',
  ),
  // `auto` sets marks in conversations that are likely to continue (ruling T5).
  auto_cache: oneOf(['off', 'on_key', 'auto', 'always']).describe(
    'messages: the requests in which the gateway sets cache marks. `on_key`: those with a conversation key. `auto`: those with a key, tools or an earlier answer.',
  ),
  auto_cache_same_wire: flag.describe(
    'messages: whether `auto_cache` also applies to requests of the same wire in which the client sets no mark.',
  ),
  // A fallback chain sends a conversation to the entry that answered it before, for this long (ruling Y23).
  cache_life: oneOf(['5m', '30m', '1h']).describe('How long the prompt cache lives after its last use.'),
  usage_quirk: oneOf(['none', 'cache_hit_fields', 'excl_reasoning', 'top_level_cached', 'in_choice']).describe(
    'How the usage in answers differs from the usage of the wire.',
  ),
  // With strict fields, `user` becomes `metadata.user_id` on the messages wire (ruling P5).
  strict_fields: flag.describe('Whether the upstream rejects fields that the wire does not define.'),
  // The added user turn is always the same (ruling T23).
  assistant_first: flag.describe(
    'messages: whether a conversation may begin with the assistant. If not, a short user turn is put before it.',
  ),
  one_sampling_field: flag.describe(
    'messages: whether the upstream accepts only one of `temperature` and `top_p` in a request.',
  ),
  // The next two keys decide which references to data outside of the request may go upstream (ruling U12).
  remote_media: passage.describe('Whether addresses of media in requests of the same wire are passed on or refused.'),
  stored_files: passage.describe('Whether ids of files and prompts that the provider stores are passed on or refused.'),
  // Calls of hosted tools pass even if the price is missing; `check` and the program's start report this (ruling C11).
  charges: listOf(oneOf(chargeNames), 'charges').describe(
    'What the provider charges for in addition to input and output. `check` names the models that have no price for it.',
  ),
  // The catalog entry of a model can allow single betas of this list (ruling C7).
  costly_betas: listOf(filled('must name a beta'), 'betas').describe(
    'messages: betas that raise the price, which are dropped from requests. `*` stands for any ending.',
  ),
  // The fields in the next two keys are added to those in `catalog/routing-fields.ts` (ruling Y13). Reading converts
  // field names to lower case.
  routing_fields: listOf(filled('must name a request field'), 'request fields').describe(
    'Further request fields that choose another model, provider, host, key or price. They are dropped. `a.b` is the member `b` of the object `a`.',
  ),
  routing_containers: listOf(filled('must name a request field'), 'request fields').describe(
    'Objects whose members the upstream reads like fields of the request. The fields that choose another model or price are dropped there too.',
  ),
  // An answer with a name that is not listed is billed nevertheless (ruling Y13).
  answer_names: listOf(filled('must name a model'), 'names').describe(
    'Further model names that answers may have. `*` stands for any characters. An answer with any other name gets the flag `model_differs`.',
  ),
  // The texts of the next two keys are added to the rules for refusals in the profile (ruling U2).
  account_faults: listOf(filled('must be a part of the text'), 'parts of texts').describe(
    'Text in a 4xx error that shows a fault of the account with the provider. Choose words that no request can put into an error.',
  ),
  // For example, a server may answer 500 if a model without image support gets an image (ruling U8).
  request_faults: listOf(filled('must be a part of the text'), 'parts of texts').describe(
    'Text in a 5xx error that shows a fault of the request. The client then gets a 400.',
  ),
  envelope: z
    .strictObject({
      version: filled('must be a version').describe(
        'The value of `anthropic_version` in the body, which replaces the header.',
      ),
      omits: listOf(oneOf(['model', 'stream']), 'model and stream').describe('Members that are left out of the body.'),
      betas: oneOf(['header', 'body']).describe('Where betas are sent. `body`: as the list `anthropic_beta`.'),
    })
    .optional()
    .describe(
      'messages: how the body differs for a cloud whose path contains the model and says whether the answer is a stream.',
    ),
  prefer_stream: flag.describe(
    'Whether the gateway asks the upstream for a stream even if a client of another wire asks for JSON.',
  ),
})

export type ProfileKeys = z.output<typeof profileKeys>
