/*
 * What every wire's questions are made of.
 */

export const parameters = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
export const description = 'Report whether all is well.'
export const result = 'The report has been filed.'

/** What an answer may cost at most: it has room for a model that thinks unasked, and few come near it. */
export const outputTokens = 2_000
/** The least that the messages wire takes. */
export const thinkingTokens = 1_024

/** How the clients of the chat and responses wires send their key. */
export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
