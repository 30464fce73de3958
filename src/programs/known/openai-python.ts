import type { Program } from '../program.ts'

export const openaiPython: Program = {
  wires: ['chat', 'responses'],
  settings: ({ origin, key, model }, wire) => ({
    code: `from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="${key}")
${
  wire === 'chat'
    ? `answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`
    : `answer = client.responses.create(model="${model}", input="Hello")
print(answer.output_text)`
}`,
  }),
}
