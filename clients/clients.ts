import type { ClientWire } from '../src/catalog/wire-names.ts'
import type { Agent } from './agents/agent.ts'
import { npmAgents } from './agents/npm.ts'
import { pythonAgents } from './agents/python.ts'
import type { Cell } from './cell.ts'
import type { Source } from './installs.ts'
import { type Program, programs } from './programs.ts'

/**
 * A client of the suite (an agent, an SDK or a program): its source, and a function that runs one cell of the table.
 */
export type Entry = {
  client: string
  kind: 'agents' | 'sdks' | 'python' | 'go'
  source: Source
  /** Whether it runs as a separate program. If not, it is a library that the suite calls. */
  isProgram: boolean
  wires: readonly ClientWire[]
  run(clientWire: ClientWire, modelWire: ClientWire): Promise<Cell>
}

const sdks = [
  ['openai-node', 'openai', ['chat', 'responses']],
  ['anthropic-node', '@anthropic-ai/sdk', ['messages']],
  ['ai-sdk', 'ai', ['messages', 'chat', 'responses']],
  ['langchain', '@langchain/openai', ['messages', 'chat', 'responses']],
  ['openai-agents', '@openai/agents', ['chat', 'responses']],
] as const satisfies readonly (readonly [string, string, readonly ClientWire[]])[]

/** In the order of the page. Clients are imported only when they run, because they may have to be installed first. */
export const entries: readonly Entry[] = [
  ...[...npmAgents, ...pythonAgents].map(agentEntry),
  ...sdks.map(
    ([client, name, wires]): Entry => ({
      client,
      kind: 'sdks',
      source: { from: 'npm', package: name, bin: '' },
      isProgram: false,
      wires,
      async run(clientWire, modelWire) {
        const { runSdk } = await import('./run-sdk.ts')
        const { sdks } = await import('./sdks/index.ts')
        return runSdk(sdks.find((sdk) => sdk.client === client)!, clientWire, modelWire)
      },
    }),
  ),
  ...programs.map(programEntry),
]

function programEntry(program: Program): Entry {
  const { client, kind, source, wires } = program
  return {
    client,
    kind,
    source,
    isProgram: true,
    wires,
    async run(clientWire, modelWire) {
      const { runProgram } = await import('./run-program.ts')
      return runProgram(program, clientWire, modelWire)
    },
  }
}

function agentEntry(agent: Agent): Entry {
  const { client, source, wires } = agent
  return {
    client,
    kind: 'agents',
    source,
    isProgram: true,
    wires,
    async run(clientWire, modelWire) {
      const { runAgent } = await import('./run-agent.ts')
      return runAgent(agent, clientWire, modelWire)
    },
  }
}
