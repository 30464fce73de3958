/** How such a text begins (LiteLLM). */
const opening = 'litellm.'

/** Between LiteLLM's names for a failure (`litellm.BadRequestError: OpenAIException - `) and what it is about. */
const colon = 'Exception - '

/** What it adds: which of its models it was, and its own settings. */
const addition = /\nmodel=|\n\nLiteLLM: |\. Received Model Group=/

/**
 * What the server behind a proxy said of a request, where the proxy tells it inside a text of its own (LiteLLM): that text
 * names the proxy and its provider, so that nothing of it could be told. Any other text as it is.
 */
export function unwrap(text: string): string {
  const at = text.startsWith(opening) ? text.indexOf(colon) : -1
  if (at === -1) return text
  const [words = ''] = text.slice(at + colon.length).split(addition, 1)
  if (!words.startsWith('{')) return words
  try {
    const { error, message } = JSON.parse(words) as { error?: { message?: unknown }; message?: unknown }
    const said = error?.message ?? message
    return typeof said === 'string' ? said : text
  } catch {
    return text
  }
}
