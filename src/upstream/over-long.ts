/** Error codes that servers use for a prompt that is too long. */
const codes: ReadonlySet<string> = new Set([
  'context_length_exceeded',
  'exceed_context_size_error', // llama.cpp
  'context_window_exceeded',
  'model_context_window_exceeded',
  'ContextWindowExceededError', // LiteLLM
])

const unnumbered = "The prompt exceeds this model's maximum context length."

type Wording = {
  pattern: RegExp
  /**
   * Patterns for numbers beside the match of `pattern`. `before` is for the text before the match, and finds the first
   * argument of `say`. `behind` is for the text after the match, and finds the last argument.
   */
  before?: RegExp
  behind?: RegExp
  /** Agents recognize these words, so the text may be passed on as it is. */
  isKnown?: true
  say(first?: string, second?: string, third?: string): string
}

/** The texts by which servers report an over-long prompt. We repeat their numbers in words that agents know (U3). */
const wordings: readonly Wording[] = [
  { pattern: /prompt is too long(?::? (\d{1,12}) tokens?)?/i, behind: /^ > (\d{1,12})/, isKnown: true, say: tooLong },
  {
    pattern: /maximum context length(?: is (\d{1,12}) tokens)?/i,
    behind: /^[^\d]{0,80}(\d{1,12}) tokens/,
    isKnown: true,
    say: (max, count) => limited(count, max),
  },
  {
    pattern: /exceeds? the context window/i,
    isKnown: true,
    say: () => "The prompt exceeds this model's context window, its maximum context length.",
  },
  {
    pattern: /exceed context limit(?:: (\d{1,8}) \+ \d{1,8} > (\d{1,8}))?/i,
    isKnown: true,
    say: limited,
  },
  // llama.cpp.
  {
    pattern: /(?:\((\d{1,12}) tokens\) )?exceeds the available context size(?: \((\d{1,12}) tokens\))?/i,
    say: tooLong,
  },
  // vLLM.
  {
    pattern: /(?:\(length (\d{1,12})\) is )?longer than the maximum model length(?: of (\d{1,12}))?/i,
    say: limited,
  },
  // LM Studio (lmstudio-ai/lmstudio-bug-tracker#546, 2025-03-24; Gitlawb/openclaude#353, 2026-04-04; anomalyco/opencode#11141, 2026-01-29).
  {
    pattern: /greater than the context length(?: \(n_keep: (\d{1,12}) ?>= n_ctx: (\d{1,12})\))?/i,
    say: tooLong,
  },
  {
    pattern: /cannot truncate prompt with n_keep \((\d{1,12})\) >= n_ctx \((\d{1,12})\)/i,
    say: tooLong,
  },
  {
    pattern: /loaded with context length of only (\d{1,12}) tokens/i,
    before: /keep the first (\d{1,12}) tokens/i,
    say: tooLong,
  },
  // Ollama.
  {
    pattern: /prompt too long; exceeded (?:max )?context length(?: by \d{1,12} tokens)?/i,
    say: () => tooLong(),
  },
  {
    pattern: /context length is only (\d{1,12}) tokens/i,
    before: /passed (\d{1,12}) input tokens/i,
    say: limited,
  },
  // Text Generation Inference (huggingface/text-generation-inference, router/src/validation.rs).
  {
    pattern:
      /`inputs` tokens \+ `max_new_tokens` must be <= (\d{1,10})(?:\. Given: (\d{1,10}) `inputs` tokens and (\d{1,10}))?/i,
    say: (max, count, cap) =>
      cap
        ? `input length and \`max_tokens\` exceed context limit: ${count} + ${cap} > ${max}`
        : limited(undefined, max),
  },
]

/** Whether an error code says that the prompt does not fit. */
export function isOverLongCode(code: string | undefined): boolean {
  return code !== undefined && codes.has(code)
}

/**
 * Recognises the refusal of a prompt that is too long, by the refusal's words or code. Returns our text for the client.
 * Returns undefined for other refusals.
 */
export function readOverLong(text: string, code: string | undefined): { told: string; isKnown: boolean } | undefined {
  for (const { pattern, before, behind, isKnown = false, say } of wordings) {
    const match = pattern.exec(text)
    if (!match) continue
    const numbers = match.slice(1)
    if (before) numbers.unshift(before.exec(text.slice(0, match.index))?.[1] as string)
    if (behind) numbers.push(behind.exec(text.slice(match.index + match[0].length))?.[1] as string)
    return { told: say(numbers[0], numbers[1], numbers[2]), isKnown }
  }
  return isOverLongCode(code) ? { told: unnumbered, isKnown: false } : undefined
}

function tooLong(count?: string, max?: string): string {
  return count && max ? `prompt is too long: ${count} tokens > ${max} maximum` : 'prompt is too long'
}

function limited(count?: string, max?: string): string {
  const limit = max ? `This model's maximum context length is ${max} tokens.` : unnumbered
  return count ? `${limit} The messages have ${count} tokens.` : limit
}
