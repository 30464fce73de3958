/**
 * Members by which servers reveal their software, their settings and their speed (ruling P9). The specification has
 * none of these members. The source of each is beside it.
 */
export const tellingNames: readonly string[] = [
  'system_fingerprint', // the build of the server, on the chat wire
  'timings', // llama.cpp
  '__verbose', // llama.cpp, its settings
  'generation_settings', // llama.cpp
  'provider', // OpenRouter
  'x_groq', // Groq, with ids and times
  'time_info', // Cerebras
  'perf_metrics', // Fireworks
  'kv_transfer_params', // vLLM
  'nvext', // NVIDIA's servers
  'weight_version', // SGLang
  'stats', // LM Studio, with the next two
  'model_info',
  'runtime',
]

const telling = new Set(tellingNames)

/** The edits that remove those members that reveal something; a null does not. */
export function withoutTelling(answer: Record<string, unknown>): Map<string, string | undefined> {
  const values = new Map<string, string | undefined>()
  for (const name of Object.keys(answer)) if (telling.has(name) && answer[name] != null) values.set(name, undefined)
  return values
}
