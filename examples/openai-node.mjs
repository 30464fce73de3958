// The OpenAI SDK on both of its wires, here with a model that speaks neither.
//   npm install openai
//   TRIWIRE_KEY=sk-tri-… node examples/openai-node.mjs
import OpenAI from 'openai'

const url = process.env.TRIWIRE_URL ?? 'http://127.0.0.1:8080'
const model = process.env.TRIWIRE_MODEL ?? 'sim-messages'
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: process.env.TRIWIRE_KEY })

const stream = client.chat.completions.stream({
  model,
  messages: [{ role: 'user', content: 'What is the weather? Use the tool.' }],
  tools: [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'The weather of a city',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      },
    },
  ],
})
const answer = await stream.finalChatCompletion()
console.log(answer.choices[0]?.message.tool_calls?.map((call) => call.function))
console.log(answer.usage)

// The gateway keeps nothing between requests: the whole conversation is in the input.
const response = await client.responses.create({
  model,
  input: [
    { role: 'user', content: 'Say hello.' },
    { role: 'assistant', content: 'Hello!' },
    { role: 'user', content: 'Again.' },
  ],
})
console.log(response.output_text)
