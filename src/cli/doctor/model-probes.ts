import { randomBytes } from 'node:crypto'
import type { ProbeReply } from './client-wire.ts'
import { type AskGateway, none, ok, type ProbeVerdict } from './probe.ts'
import { objectOf } from './read-answer.ts'

/** Long enough for upstreams that cache prefixes from 1,024 tokens on, with any tokenizer. */
const longText = 'The lighthouse keeper wrote down the weather, the ships and the tides of the day. '.repeat(100)

/** The probes of each model on each wire. */
export const modelProbes: Readonly<Record<string, (ask: AskGateway) => Promise<ProbeVerdict>>> = {
  text: async (ask) => isText(await ask({})),
  stream: async (ask) => isText(await ask({ stream: true })),
  'tool call': async (ask) => {
    const question = { stream: true, text: 'Report that all is well.' }
    const called = await ask({ ...question, isCall: true })
    const [call] = called.calls
    if (call === undefined) throw new Error('the tool was not called')
    if (!objectOf(call.arguments)) throw new Error(`the arguments are not a JSON object: ${call.arguments}`)
    const after = await ask({ ...question, called })
    if (after.text === '' && after.calls.length === 0) throw new Error('nothing came after the result of the call')
    return ok(call.arguments)
  },
  reasoning: async (ask) => {
    const { reasoning } = await ask({ stream: true, isReasoning: true, text: 'Is 91 a prime number? One word.' })
    return reasoning ? ok(`${reasoning.length} characters`) : none('this model shows none here')
  },
  'cache hit': async (ask) => {
    // The text is new, so that a cache entry of an earlier run proves nothing.
    const key = `doctor-${randomBytes(6).toString('hex')}`
    const cached = { text: `${key}. ${longText}`, key }
    await ask({ cached })
    const { cachedTokens, inputTokens } = await ask({ cached })
    if (cachedTokens === undefined) throw new Error('the count of cached tokens is missing')
    return cachedTokens > 0
      ? ok(`${cachedTokens} of ${inputTokens} tokens read from cache`)
      : none('this model read nothing from cache')
  },
}

function isText({ text, inputTokens, outputTokens }: ProbeReply): ProbeVerdict {
  if (text === '') throw new Error(`the answer has no text, but ${outputTokens} tokens`)
  return ok(`${inputTokens} tokens in, ${outputTokens} out`)
}
