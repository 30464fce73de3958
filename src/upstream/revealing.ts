/** Top-level domains. A word that ends with a top-level domain counts as a host name. */
const topDomains =
  'com|net|org|edu|gov|info|biz|io|ai|dev|cloud|tech|run|systems|network|host|online|site|xyz|internal|local|lan|svc|cluster|app|co|eu|us|uk|de|fr|jp|cn'

/** Matches the end of a host name: the dot and the top-level domain, whatever precedes them. */
export const hostName = new RegExp(`(?<=[a-z0-9-])\\.(?:${topDomains})\\b`, 'i')

/**
 * Patterns that a text for a client must not match, because they reveal how or where the service is hosted (ruling U3).
 *
 * A pattern matches only a short mark of a host, address or path, such as `://`, and has no unbounded quantifier. So
 * the work for one character of a text is bounded (ruling U11).
 */
export const revealing: readonly RegExp[] = [
  // URLs and e-mail addresses.
  /(?<=[a-z0-9+.-]):\/\//i,
  /(?<=[\w.+-])@[\w-]{1,63}\.\w/,
  // IPv4, with or without port; IPv6.
  /\b\d{1,3}(?:\.\d{1,3}){3}\b/,
  /\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b|::[0-9a-f]{1,4}\b/i,
  // Host names with a top-level domain or a port, and `localhost`.
  hostName,
  /\blocalhost\b|(?<=[a-z0-9.-]):\d{2,5}\b/i,
  // Keys with the prefix of a vendor.
  /\b(?:sk|pk|rk|key|xai|gsk|AIza|ghp|hf|Bearer)[-_ ][A-Za-z0-9_-]{6}/,
  /\b(?:AIza|AKIA|ASIA|ya29\.|hf_|r8_|nvapi-|pplx-|csk-|fw_)[\w-]{8}/,
  // Accounts, organisations, projects, deployments and requests by id.
  /\b(?:org|proj|acct|project|organization|deployment|subscription|tenant|workspace|account|req|request|user)[-_ ][A-Za-z-]{0,32}\d[\w-]{3}/i,
  // Short ids of at least six characters. They have a digit, or a capital after a small letter.
  /\b(?:org|proj|acct|req|user|ws|wrkspc)[-_](?=[A-Za-z]{0,32}\d)\w{6}/i,
  /\b(?:org|proj|acct|req|user|ws|wrkspc)[-_](?=\w{0,32}[a-z][A-Z])\w{6}/,
  /\b(?:org|proj|acct|project|organization|deployment|subscription|tenant|workspace|account|req|request)[-_ ]id\b/i,
  // Names of resources in the forms of Google, Azure and AWS.
  /\b(?:projects|organizations|accounts|subscriptions|deployments|workspaces|tenants)\/[\w.-]{2}/i,
  /\barn:|\b\d{12}\b/i,
  // Regions.
  /\b(?:us|eu|ap|sa|ca|me|af|il|europe|asia|australia|northamerica|southamerica)-(?:gov-)?(?:north|south|east|west|central){1,2}-?\d\b/i,
  /\b(?:east|west|north|south|central|sweden|france|germany|japan|korea|norway|uk|canada|brazil|australia|switzerland){1,3}(?:us|europe|asia|central|east|west|north|south)\d?\b/i,
  // Providers and serving software.
  /\b(?:anthropic|openai|azure|aws|amazon|bedrock|vertex|google|gemini|deepseek|mistral|groq|together[. ]?(?:ai|computer)|fireworks|openrouter|xai|x\.ai|moonshot|dashscope|alibaba|aliyun|zhipu(?:ai)?|volcengine|volces|bytedance|tencent|xiaomi(?:mimo)?|baidu|qianfan|siliconflow|microsoft|databricks|github models|hugging ?face|cerebras|sambanova|deepinfra|baseten|novita|nebius|watsonx|portkey|helicone|vercel|cohere|cloudflare|nvidia|vllm|sglang|ollama|llama\.cpp|litellm|triton|tensorrt|nginx|envoy|istio|tgi|simulator)\b/i,
  // A provider whose name in small letters is an ordinary word.
  /\bPerplexity\b/,
  // File paths. Pointers to members of the request (`/messages/…`) do not count.
  /(?:^|[\s"'`(=[<,])\/(?!(?:messages|input|tools)\/)[\w.-]{1,255}\/[\w.-]/,
  /[A-Z]:\\/,
  // Traces of a crashed program, and names of its files.
  /\btraceback\b/i,
  /(?<=[\w-])\.(?:py|pyc|pyx|cpp|cu|so|safetensors|gguf|onnx)\b/,
]

/** An id that is recognized by its form. */
const uuid = /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/i

const capitals = /^[A-Z0-9]{16}/
const small = /[a-z_]/

/** Matches the name of a feature that ends in a date, such as `web_search_20250305`. Such a name reveals nothing. */
const datedName = /^(?:[a-z]{1,24}[-_]){1,6}20\d\d[-_]?\d\d[-_]?\d\d$/

/** A word of letters and digits counts as a key or an id if it has at least this many characters. */
const longCharacters = 28

/** Whether a word of `[A-Za-z0-9_-]` looks like a key or an id. */
export function isKeyLike(word: string): boolean {
  if (!/\d/.test(word)) return false
  if (uuid.test(word) || word.split('-').some((part) => capitals.test(part) && !small.test(part))) return true
  return word.length >= longCharacters && /[A-Za-z]/.test(word) && !datedName.test(word)
}
