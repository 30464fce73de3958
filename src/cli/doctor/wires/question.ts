/*
 * The parts that the probes of every wire share.
 */

export const parameters = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
export const description = 'Report whether all is well.'
export const result = 'The report has been filed.'

/** The output cap. It leaves room for a model that reasons without being asked; few answers come near it. */
export const outputTokens = 2_000
/** The smallest budget that the messages wire accepts. */
export const thinkingTokens = 1_024

/** The header in which clients of the chat and responses wires send their key. */
export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
