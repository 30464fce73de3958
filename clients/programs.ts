import type { ClientWire } from '../src/catalog/wire-names.ts'
import { everyWire } from './agents/agent.ts'
import type { Source } from './installs.ts'

/** An SDK or framework, and our small program (python/, go/) that runs its cases. */
export type Program = {
  client: string
  kind: 'python' | 'go'
  source: Source
  /** The script that the interpreter runs; absent for a compiled program. */
  file?: string
  wires: readonly ClientWire[]
  /** Its name in `triwire setup`, whose printed program is run too. */
  setup?: string
}

export const programs: readonly Program[] = [
  python('openai-python', 'openai', 'vendors', 'openai_sdk.py', ['chat', 'responses'], 'openai-python'),
  python('anthropic-python', 'anthropic', 'vendors', 'anthropic_sdk.py', ['messages'], 'anthropic-python'),
  python('openai-agents-python', 'openai-agents', 'vendors', 'openai_agents_sdk.py', ['chat', 'responses']),
  python('langchain-python', 'langchain', 'langchain', 'langchain_standard.py', everyWire),
  python('pydantic-ai', 'pydantic-ai-slim', 'pydantic-ai', 'pydantic_ai_sdk.py', everyWire),
  python('instructor', 'instructor', 'instructor', 'instructor_sdk.py', everyWire),
  python('llama-index', 'llama-index-core', 'llama-index', 'llama_index_sdk.py', everyWire),
  go('openai-go', 'github.com/openai/openai-go/v3', ['chat', 'responses']),
  go('anthropic-sdk-go', 'github.com/anthropics/anthropic-sdk-go', ['messages']),
]

function go(client: string, name: string, wires: readonly ClientWire[]): Program {
  return { client, kind: 'go', source: { from: 'go', package: name, bin: client }, wires }
}

function python(
  client: string,
  name: string,
  set: string,
  file: string,
  wires: readonly ClientWire[],
  setup?: string,
): Program {
  const source: Source = { from: 'python', package: name, set, bin: 'python' }
  return { client, kind: 'python', source, file: `python/${file}`, wires, ...(setup && { setup }) }
}
