// The Anthropic SDK, here with a model that speaks the chat wire.
//   npm install @anthropic-ai/sdk
//   TRIWIRE_KEY=sk-tri-… node examples/anthropic-node.mjs
import Anthropic from '@anthropic-ai/sdk'

// Without /v1: this client adds it.
const client = new Anthropic({
  baseURL: process.env.TRIWIRE_URL ?? 'http://127.0.0.1:8080',
  apiKey: process.env.TRIWIRE_KEY,
})
const model = process.env.TRIWIRE_MODEL ?? 'sim-chat'

const stream = client.messages.stream({
  model,
  max_tokens: 2_000,
  thinking: { type: 'enabled', budget_tokens: 1_024 },
  messages: [{ role: 'user', content: 'Why is the sky blue?' }],
})
stream.on('thinking', (text) => process.stderr.write(text))
stream.on('text', (text) => process.stdout.write(text))
const message = await stream.finalMessage()
console.log(`\n${message.stop_reason}`, message.usage)

try {
  await client.messages.create({
    model: 'no-such-model',
    max_tokens: 10,
    messages: [{ role: 'user', content: 'Hello' }],
  })
} catch (error) {
  // The id is what the operator finds in the log and, for billed requests, in the ledger.
  if (error instanceof Anthropic.NotFoundError) console.log(error.message, error.requestID)
  else throw error
}
