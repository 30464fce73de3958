import { join } from 'node:path'
import type { Adapter } from '../../src/adapter.ts'
import { findNpm, homeOf, nodeOf, nodePackage, startProgram } from '../../src/program.ts'

/**
 * The versions of the makers' image: those of their lock file and their Dockerfile, at 669825cb of 2026-05-25. npm itself chooses
 * a newer @hono/node-server, with which the gateway answers every stream with 500 (its open issue 1389).
 */
const shipped = { [nodePackage]: '20.20.2', '@hono/node-server': '1.13.5', '@hono/node-ws': '1.2.0', hono: '4.9.7' }

const adapter: Adapter = {
  title: 'Portkey gateway',
  homepage: 'https://github.com/Portkey-AI/gateway',
  switchedOn: [
    'The open gateway without its console. Provider, address and key come with each request, in its headers.',
    'The provider openai for models of Chat Completions and Responses, anthropic for models of Messages.',
    'Node 20, @hono/node-server 1.13.5, @hono/node-ws 1.2.0 and hono 4.9.7, as in the image and the lock file of its makers.',
    'npm itself chooses @hono/node-server 1.14.2 or later: the gateway then answers every stream with 500 (its issue 1389).',
  ],
  features: [],
  // The paths of Messages and Responses only pass on to a provider of the same wire.
  pairs: ['chat>chat', 'chat>messages', 'messages>messages', 'responses>responses'],
  deviations: [],
  lanes: 8,
  jobs: 4,
  find: async () => findNpm('portkey', '@portkey-ai/gateway', shipped),
  async start({ upstream, folder, signal }) {
    const server = join(homeOf('portkey'), 'node_modules/@portkey-ai/gateway/build/start-server.js')
    const program = await startProgram({ folder, signal }, ({ port }) => ({
      command: [nodeOf('portkey'), server, `--port=${port}`, '--headless'],
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
