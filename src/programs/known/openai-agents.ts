import type { Program } from '../program.ts'

export const openaiAgents: Program = {
  wires: ['responses', 'chat'],
  settings: ({ origin, key, model }, wire) => ({
    code: `import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled } from '@openai/agents'
import OpenAI from 'openai'

setDefaultOpenAIClient(new OpenAI({ baseURL: '${origin}/v1', apiKey: '${key}' }))
setOpenAIAPI('${wire === 'chat' ? 'chat_completions' : 'responses'}')
// Traces would go to the vendor.
setTracingDisabled(true)

const agent = new Agent({ name: 'Greeter', instructions: 'Be brief.', model: '${model}' })
console.log((await run(agent, 'Hello')).finalOutput)`,
  }),
}
