import { z } from 'zod'
import { reasoningLevels } from '../inference/reasoning.ts'
import { count, filled, flag, listOf, oneOf, passage, text } from './kinds.ts'

/** The price names of writes to a cache (usual, for 1 hour, for 12 hours), and of calls of the provider's own tools. */
const chargeNames = ['cache_write', 'cache_write_1h', 'cache_write_12h', 'calls'] as const

const level = oneOf(reasoningLevels)
const fieldNames = listOf(filled('must name a request field'), 'request fields')
const signatureCure = 'must be text of 1 to 200 characters'

/**
 * The keys of a profile as they are written in the configuration file. The type `Profile` follows from them.
 * `profiles.ts` has the value of each key for an unknown upstream, except for optional keys.
 */
export const profileKeys = z.strictObject({
  max_field: oneOf(['max_completion_tokens', 'max_tokens']).describe('chat: the field that caps the output.'),
  // Ruling T17.
  min_output: count(1).describe('The smallest output cap the upstream takes; smaller ones are raised to it.'),
  reasoning: z
    .strictObject({
      style: oneOf(['none', 'effort', 'budget', 'adaptive', 'switch', 'toggle']).describe(
        'How it takes a reasoning wish; chat: `switch` is `thinking` enabled or disabled, and `reasoning_effort`.',
      ),
      levels: listOf(level, 'levels').describe('The levels it knows; a wish becomes the highest one not above it.'),
      default: level.optional().describe('What it does when nothing is asked.'),
      can_disable: flag.describe('Whether it can be told not to reason.'),
      forced_calls: flag
        .optional()
        .describe('chat: whether it can be forced to call a tool while it reasons. Default: true.'),
      field: filled('must name a request field').describe('toggle: the boolean field.').optional(),
    })
    .describe('Reasoning.'),
  // The text of a cut answer is then no basis for an estimate (ruling C12). `asked`: if the request asks for reasoning.
  // `unless_off`: unless the request switches it off.
  hidden_reasoning: oneOf(['never', 'asked', 'unless_off']).describe(
    'When it may reason without showing all of it in its stream; a summary is not all of it.',
  ),
  // Ruling Y4.
  cumulative: listOf(oneOf(['arguments', 'reasoning']), 'arguments and reasoning').describe(
    'What each piece of its stream repeats from the beginning: `arguments` of calls, `reasoning`.',
  ),
  // Replayed reasoning goes to the same field.
  reasoning_field: oneOf(['auto', 'reasoning_content', 'reasoning', 'details']).describe(
    'chat: where its reasoning text is.',
  ),
  replay_thought: z
    .strictObject({
      when: oneOf(['never', 'tool_turns', 'all']).describe('Which earlier turns get their reasoning back.'),
      required: flag.describe('Whether it refuses a tool turn that lacks its reasoning.'),
    })
    .describe('chat: reasoning of earlier turns.'),
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
    .describe('Tags around reasoning inside the text, or `false`.'),
  drops: fieldNames.describe('Request fields it rejects.'),
  accepts: fieldNames.describe('Request fields beyond the plain wire that it takes.'),
  tool_choice: listOf(oneOf(['auto', 'none', 'required', 'named']), 'tool choices').describe(
    'The tool choices it knows.',
  ),
  tool_id_style: oneOf(['free', 're64', 'len40', 'alnum9', 'fn_index']).describe('What its tool call ids look like.'),
  tool_schemas: oneOf(['any', 'plain']).describe(
    'chat, responses: schemas of tools that it takes; `plain`: an object at the root that says its `properties`, and lists that say their `items`.',
  ),
  tool_name_max: count(11).describe('The longest tool name, in characters.'),
  // R-STOP.
  max_stops: count(0).describe('How many stop sequences it takes; the gateway enforces the rest.'),
  operator_in_place: oneOf(['any', 'first_only', 'message_rule']).describe('Where it takes system turns.'),
  developer_role: flag.describe('False: `developer` is sent as `system`.'),
  images: flag.describe('Whether it takes images.'),
  files: flag.describe('Whether it takes documents.'),
  tool_images: oneOf(['native', 'follow_up']).describe('Images in a tool result: there, or in a user turn after it.'),
  shape: oneOf(['schema', 'closed', 'json', 'none']).describe(
    'The structured output it can be held to; `closed`: schemas whose objects are closed and that bound no number, length or list.',
  ),
  prefill: z
    .union([z.enum(['none', 'native']), z.templateLiteral(['flag:', z.string().min(1)])], {
      error: 'must be none, native, or flag: and the name of a request field',
    })
    .describe('How it continues a trailing assistant turn.'),
  after_results: filled('must say something')
    .optional()
    .describe('chat: words of an assistant turn between results of tools and a user turn, which may not follow them.'),
  // Gemini's chat-compatible endpoint has signatures in `extra_content` of the call.
  call_signature: text(signatureCure)
    .min(1, { error: signatureCure })
    .max(200, { error: signatureCure })
    .optional()
    .describe(
      'chat: what stands for the signature of each call of the conversation (Gemini), which other wires cannot carry.',
    ),
  null_content: oneOf(['null', 'empty']).describe('chat: the content beside tool calls where there is no text.'),
  // `remove`: the provider checks proofs of its own reasoning, and refuses other reasoning (ruling P1). `pass`: it
  // checks none, and reads or even requires reasoning without a proof.
  unproven_thought: oneOf(['remove', 'pass']).describe(
    'messages, responses: thinking without a signature, or reasoning without `encrypted_content`, in same-wire conversations.',
  ),
  string_only: flag.describe('chat: text parts are joined to one string.'),
  // Ruling T5. `auto`: for conversations that are likely to continue.
  auto_cache: oneOf(['off', 'on_key', 'auto', 'always']).describe(
    'messages: cache marks set by the gateway. `on_key`: for requests with a conversation key; `auto`: for those with a key, tools or an earlier answer.',
  ),
  auto_cache_same_wire: flag.describe('messages: the same on the same wire, where the client sets no mark itself.'),
  // Ruling Y23: this is how long a conversation stays with the entry of a chain that answered it.
  cache_life: oneOf(['5m', '30m', '1h']).describe('How long its prompt cache lives after the last use.'),
  usage_quirk: oneOf(['none', 'cache_hit_fields', 'excl_reasoning', 'top_level_cached', 'in_choice']).describe(
    'Where its usage differs from its wire.',
  ),
  // Ruling P5.
  strict_fields: flag.describe('Whether it rejects fields its wire does not define.'),
  // Ruling T23.
  assistant_first: flag.describe(
    'messages: whether a conversation may begin with the assistant; else a small user turn is put before it.',
  ),
  one_sampling_field: flag.describe('messages: at most one of `temperature` and `top_p`.'),
  // The next two keys: ruling U12.
  remote_media: passage.describe('What becomes of addresses of media in same-wire requests.'),
  stored_files: passage.describe('What becomes of ids of files and prompts that the provider stores.'),
  // Ruling C11.
  charges: listOf(oneOf(chargeNames), 'charges').describe(
    'What its provider charges for beside plain input and output; `check` tells where it has no price.',
  ),
  // Ruling C7.
  costly_betas: listOf(filled('must name a beta'), 'betas').describe(
    'messages: betas of the client that raise the price and are dropped; `*` is any ending.',
  ),
  // The next two keys: ruling Y13, in addition to `catalog/routing-fields.ts`. Names are in lower case once they are
  // read.
  routing_fields: listOf(filled('must name a request field'), 'request fields').describe(
    'Further request fields that choose another model, provider, host, key or price, and are dropped; `a.b` is the member `b` of the object `a`.',
  ),
  routing_containers: listOf(filled('must name a request field'), 'request fields').describe(
    'Objects whose members the upstream reads as if they stood at the top level: such fields are dropped there too.',
  ),
  // Ruling Y13.
  answer_names: listOf(filled('must name a model'), 'names').describe(
    'Further names under which the model answers; `*` stands for any letters. An answer under any other name is flagged `model_differs`.',
  ),
  // In addition to the refusals of the profile (ruling U2).
  account_faults: listOf(filled('must be a part of the text'), 'parts of texts').describe(
    "Parts of a 4xx's text that tell of the provider account's own trouble. Choose words that no request can put into an error.",
  ),
  // Ruling U8, for example an image for a model of text.
  request_faults: listOf(filled('must be a part of the text'), 'parts of texts').describe(
    "Parts of a 5xx's text that tell of a fault of the request, which is then a 400.",
  ),
  envelope: z
    .strictObject({
      version: filled('must be a version').describe(
        'What `anthropic_version` in the body says, in place of the header.',
      ),
      omits: listOf(oneOf(['model', 'stream']), 'model and stream').describe('Members that the body must not have.'),
      betas: oneOf(['header', 'body']).describe('Where betas are sent; `body`: as the list `anthropic_beta`.'),
    })
    .optional()
    .describe('messages: how a cloud takes the body whose path names the model, and whether a stream is asked for.'),
  prefer_stream: flag.describe('Ask for a stream even where the client wants JSON.'),
})

export type ProfileKeys = z.output<typeof profileKeys>
