/** The longest text of a model's that is relayed (ruling U3). */
const relayedCharactersMax = 400

/**
 * What a text must not hold when it reaches a client: each row tells how or where the service is hosted (ruling U3).
 * One match replaces the whole text, since what surrounds it would still tell.
 */
const revealing: readonly RegExp[] = [
  // URLs and e-mail addresses.
  /\b[a-z][a-z0-9+.-]*:\/\//i,
  /[\w.+-]+@[\w-]+\.[\w.]+/,
  // IPv4, with or without port; IPv6.
  /\b\d{1,3}(?:\.\d{1,3}){3}\b/,
  /\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b|::[0-9a-f]{1,4}\b/i,
  // Host names, by their last label or by port.
  /\b(?:[a-z0-9-]+\.)+(?:com|net|org|edu|gov|info|biz|io|ai|dev|cloud|tech|run|systems|network|host|online|site|xyz|internal|local|lan|svc|cluster|app|co|eu|us|uk|de|fr|jp|cn)\b/i,
  /\blocalhost\b|\b[a-z0-9.-]+:\d{2,5}\b/i,
  // Keys and other long random words.
  /\b(?:sk|pk|rk|key|xai|gsk|AIza|ghp|hf|Bearer)[-_ ][A-Za-z0-9_-]{6,}/,
  /\b(?=[A-Z]*\d)[A-Z0-9]{16,}\b/,
  /\b(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[A-Za-z])[A-Za-z0-9_-]{28,}\b/,
  // Accounts, organisations, projects, deployments and requests by id.
  /\b(?:org|proj|acct|project|organization|deployment|subscription|tenant|workspace|account|req|request|user)[-_ ](?:id\b|[A-Za-z-]*\d[\w-]{3,})/i,
  /\barn:|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b\d{12}\b/i,
  // Regions.
  /\b(?:us|eu|ap|sa|ca|me|af|il|europe|asia|australia|northamerica|southamerica)-(?:gov-)?(?:north|south|east|west|central)+-?\d\b/i,
  /\b(?:east|west|north|south|central|sweden|france|germany|japan|korea|norway|uk|canada|brazil|australia|switzerland)+(?:us|europe|asia|central|east|west|north|south)\d?\b/i,
  // Providers and serving software.
  /\b(?:anthropic|openai|azure|aws|amazon|bedrock|vertex|google|gemini|deepseek|mistral|groq|together|fireworks|openrouter|xai|x\.ai|moonshot|dashscope|alibaba|cohere|cloudflare|nvidia|vllm|sglang|ollama|llama\.cpp|litellm|triton|tensorrt|nginx|envoy|istio|tgi|simulator)\b/i,
  // File paths.
  /(?:^|[\s"'(])(?:\/[\w.-]+){2,}|[A-Z]:\\/,
]

/** By these words agents know an over-long prompt; the sentence is rebuilt around its numbers (ruling U3). */
const overLong = [
  {
    pattern: /prompt is too long(?::?\s*(\d+)\s*tokens?\s*>\s*(\d+)(?:\s*maximum)?)?/i,
    say: (count?: string, max?: string) =>
      count && max ? `prompt is too long: ${count} tokens > ${max} maximum` : 'prompt is too long',
  },
  {
    pattern: /maximum context length(?:\s*is\s*(\d+)\s*tokens)?(?:[^\d]{0,80}?(\d+)\s*tokens)?/i,
    say: (max?: string, count?: string) => {
      const limit = max
        ? `This model's maximum context length is ${max} tokens.`
        : "The prompt exceeds this model's maximum context length."
      return count ? `${limit} The messages have ${count} tokens.` : limit
    },
  },
] as const

export type ScrubContext = {
  /** What the client knows the model as, and what its upstream does; the latter is never shown where they differ. */
  modelId: string
  upstreamModel: string
  /** What to say when nothing of the text may be. */
  generic: string
}

/** A model's own words as the client may read them: whole, or one generic sentence of ours (spec 7.4.5, ruling U3). */
export function scrub(text: string, context: ScrubContext): string {
  // Control characters and line breaks have no place in a message.
  const plain = text.replace(/[\u0000-\u001f\u007f]+/g, ' ').trim()
  if (plain === '') return context.generic
  if (!isRevealing(plain, context)) return cut(plain)
  for (const { pattern, say } of overLong) {
    const match = pattern.exec(plain)
    if (match) return say(match[1], match[2])
  }
  return context.generic
}

function isRevealing(text: string, context: ScrubContext): boolean {
  if (context.upstreamModel !== context.modelId && text.toLowerCase().includes(context.upstreamModel.toLowerCase()))
    return true
  // The client's own name for the model tells nothing, whatever it looks like; as a part of other words it is not it.
  const rest = text.replaceAll(context.modelId, (match, at: number) =>
    /[\w@/.-]$/.test(text.slice(0, at)) || /^(?:[\w@/-]|[.:]\w)/.test(text.slice(at + match.length)) ? match : ' ',
  )
  return revealing.some((pattern) => pattern.test(rest))
}

function cut(text: string): string {
  const characters = [...text]
  return characters.length <= relayedCharactersMax ? text : `${characters.slice(0, relayedCharactersMax - 1).join('')}…`
}
