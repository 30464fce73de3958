import type { Program } from '../program.ts'

export const openaiNode: Program = {
  wires: ['chat', 'responses'],
  settings: ({ origin, key, model }, wire) => ({
    code: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: '${key}' })
${
  wire === 'chat'
    ? `const answer = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.choices[0]?.message.content)`
    : `const answer = await client.responses.create({ model: '${model}', input: 'Hello' })
console.log(answer.output_text)`
}`,
  }),
}
