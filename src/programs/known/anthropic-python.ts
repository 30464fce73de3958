import type { Program } from '../program.ts'

export const anthropicPython: Program = {
  wires: ['messages'],
  settings: ({ origin, key, model }) => ({
    code: `from anthropic import Anthropic

# Without /v1: this client adds it.
client = Anthropic(base_url="${origin}", api_key="${key}")
answer = client.messages.create(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content)`,
  }),
}
