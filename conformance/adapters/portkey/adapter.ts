import { join } from 'node:path'
import type { Adapter } from '../../src/adapter.ts'
import { findNpm, homeOf, startProgram } from '../../src/program.ts'

const adapter: Adapter = {
  title: 'Portkey gateway',
  homepage: 'https://github.com/Portkey-AI/gateway',
  switchedOn: [
    'The open gateway without its console. Provider, address and key come with each request, in its headers.',
    'The provider openai for models of Chat Completions and Responses, anthropic for models of Messages.',
  ],
  features: [],
  // The paths of Messages and Responses only pass on to a provider of the same wire.
  pairs: ['chat>chat', 'chat>messages', 'messages>messages', 'responses>responses'],
  deviations: [],
  lanes: 8,
  jobs: 4,
  find: async () => findNpm('portkey', '@portkey-ai/gateway'),
  async start({ upstream, folder, signal }) {
    const server = join(homeOf('portkey'), 'node_modules/@portkey-ai/gateway/build/start-server.js')
    const program = await startProgram({ folder, signal }, ({ port }) => ({
      command: [process.execPath, server, `--port=${port}`, '--headless'],
    }))
    return {
      ...program,
      key: upstream.key,
      headers: (wire) => ({
        authorization: `Bearer ${upstream.key}`,
        'x-portkey-provider': wire === 'messages' ? 'anthropic' : 'openai',
        'x-portkey-custom-host': `${upstream.origin}/v1`,
      }),
    }
  },
}

export default adapter
