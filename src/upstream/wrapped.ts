/** The start of a text that wraps another one (LiteLLM). */
const opening = 'litellm.'

/** Separates LiteLLM's names of a failure (`litellm.BadRequestError: OpenAIException - `) from its text. */
const colon = 'Exception - '

/** LiteLLM's additions to the text: its model, and its own settings. */
const addition = /\nmodel=|\n\nLiteLLM: |\. Received Model Group=/

/**
 * Extracts the text of a server that a proxy in front of it (LiteLLM) has put into a text of its own. The proxy's text names
 * itself and its provider, so it could not be shown. Any other text is returned as it is.
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
