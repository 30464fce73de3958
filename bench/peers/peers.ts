import { join } from 'node:path'
import { hasStreams } from '../answers.ts'
import { nodeOf } from './node.ts'
import type { Peer } from './peer.ts'
import { setUpRouter } from './simple-router.ts'

/** Settings for programs that start a worker for each core of the machine: here a server has only one core. */
const oneCore = { GOMAXPROCS: '1', TOKIO_WORKER_THREADS: '1' }

/** By name; the pages follow this order. */
export const peers: readonly Peer[] = [
  {
    name: 'rolter',
    language: 'Rust',
    source: { from: 'PyPI', package: 'rolter', version: '0.1.0' },
    has: 'checks a key of its development mode, and chooses a route by model; it does no accounting',
    model: 'bench',
    start: ({ home, port, origin, write }) => ({
      command: [join(home, 'bin/rolter'), 'gateway', '-c', write('rolter.toml', rolterConfig(port, origin))],
      env: { ...oneCore, RUST_LOG: 'warn' },
    }),
    prepare: async () => 'sk-rolter-dev',
  },
  {
    name: 'ferrogw',
    language: 'Go',
    source: { from: 'PyPI', package: 'ferrogw', version: '1.5.10' },
    has: 'checks a master key and its rate limit, which is set so high that it is never reached; it does no accounting',
    model: 'gpt-4o-mini',
    start: ({ home, port, origin, secret, write }) => ({
      command: [join(home, 'bin/ferrogw'), 'serve'],
      env: {
        ...oneCore,
        HOST: '127.0.0.1',
        PORT: String(port),
        MASTER_KEY: ferroKey(secret),
        GATEWAY_CONFIG: write(
          'gateway.yaml',
          // JSON is valid YAML.
          JSON.stringify({ strategy: { mode: 'single' }, targets: [{ virtual_key: 'openai' }] }),
        ),
        OPENAI_API_KEY: 'upstream-key',
        OPENAI_BASE_URL: origin,
        RATE_LIMIT_RPS: '1000000',
        RATE_LIMIT_BURST: '1000000',
        LOG_LEVEL: 'warn',
      },
    }),
    prepare: async ({ secret }) => ferroKey(secret),
  },
  {
    name: 'CLIProxyAPI',
    language: 'Go',
    source: {
      from: 'Go',
      package: 'github.com/router-for-me/CLIProxyAPI/v7',
      version: 'v7.2.140',
      main: './cmd/server',
    },
    has: 'checks a key, and chooses a route by model; its statistics of use and its log file are off',
    model: 'bench',
    start: ({ home, place, port, origin, secret, write }) => ({
      command: [
        join(home, 'program'),
        '-config',
        write(
          'config.yaml',
          JSON.stringify({
            host: '127.0.0.1',
            port,
            'auth-dir': join(place, 'auth'),
            'api-keys': [secret],
            debug: false,
            'logging-to-file': false,
            'usage-statistics-enabled': false,
            'request-retry': 0,
            'remote-management': { 'allow-remote': false, 'secret-key': '', 'disable-control-panel': true },
            'openai-compatibility': [
              {
                name: 'bench',
                'base-url': `${origin}/v1`,
                'api-key-entries': [{ 'api-key': 'upstream-key' }],
                models: [{ name: 'upstream-model', alias: 'bench' }],
              },
            ],
          }),
        ),
      ],
      env: oneCore,
    }),
  },
  {
    name: 'Portkey',
    language: 'Node',
    source: {
      from: 'npm',
      package: '@portkey-ai/gateway',
      version: '1.15.2',
      // Not every registry has the versions that the package itself asks for.
      overrides: { '@hono/node-server': '1.13.5', hono: '4.9.7' },
    },
    has: 'checks no key, because provider, address and key come with each request; its console is off',
    model: 'upstream-model',
    start: ({ home, port }) => ({
      command: [
        process.execPath,
        join(home, 'node_modules/@portkey-ai/gateway/build/start-server.js'),
        `--port=${port}`,
        '--headless',
      ],
    }),
    headers: ({ origin }) => ({
      authorization: 'Bearer upstream-key',
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `${origin}/v1`,
    }),
  },
  {
    name: 'llm-simple-router',
    language: 'Node',
    // A package that it compiles does not support our version of Node yet.
    source: { from: 'npm', package: 'llm-simple-router', version: '1.1.6', node: '20.20.2' },
    has: 'checks a key, chooses a route by model, and writes a row of its log into SQLite for each request',
    model: 'bench',
    start: ({ home, place, port }) => ({
      command: [nodeOf(home), join(home, 'node_modules/llm-simple-router/dist/cli.js')],
      env: { HOST: '127.0.0.1', PORT: String(port), DB_PATH: join(place, 'router.sqlite'), LOG_LEVEL: 'warn' },
    }),
    prepare: setUpRouter,
  },
  {
    name: 'opencodex',
    language: 'Bun',
    source: { from: 'npm', package: '@bitkyc08/opencodex', version: '2.63.0' },
    has: 'chooses a route by provider and model, and logs requests; it requires no key on loopback',
    model: 'bench/upstream-model',
    // For a whole answer on another wire it asks its model for a stream.
    modelOf: ({ wire, answer }) =>
      `${wire === 'messages' && !hasStreams(answer) ? 'streamed' : 'bench'}/upstream-model`,
    start: ({ home, place, port, origin, streamed, write }) => {
      const providerAt = (base: string) => ({
        adapter: 'openai-chat',
        baseUrl: `${base}/v1`,
        apiKey: 'upstream-key',
        liveModels: false,
        models: ['upstream-model'],
        allowPrivateNetwork: true,
      })
      const providers = { bench: providerAt(origin), streamed: providerAt(streamed) }
      write('config.json', JSON.stringify({ port, defaultProvider: 'bench', providers }))
      const program = join(home, 'node_modules/@bitkyc08/opencodex/bin/ocx.mjs')
      const path = `${join(home, 'node_modules/.bin')}:${process.env['PATH']}`
      return {
        command: [process.execPath, program, 'start', '--port', String(port)],
        env: { OPENCODEX_HOME: place, PATH: path },
      }
    },
  },
  {
    name: 'LiteLLM',
    language: 'Python',
    source: { from: 'PyPI', package: 'litellm', extras: 'proxy', version: '1.106.2' },
    has: 'checks a master key, and chooses a route by model; it has one worker, no database and no log of spending',
    model: 'bench',
    start: ({ home, port, origin, secret, write }) => {
      const upstream = { model: 'openai/upstream-model', api_base: `${origin}/v1`, api_key: 'upstream-key' }
      const config = {
        model_list: [{ model_name: 'bench', litellm_params: upstream }],
        general_settings: { master_key: secret, disable_spend_logs: true },
        litellm_settings: { request_timeout: 60, drop_params: true },
      }
      const where = ['--host', '127.0.0.1', '--port', String(port), '--num_workers', '1', '--telemetry', 'False']
      return {
        command: [join(home, 'bin/litellm'), '--config', write('litellm.yaml', JSON.stringify(config)), ...where],
        env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR' },
      }
    },
    streamsMax: 8,
  },
]

function rolterConfig(port: number, origin: string): string {
  const sections: Record<string, Record<string, string | number>> = {
    '[server]': { host: '127.0.0.1', port },
    '[[providers]]': { name: 'bench', kind: 'openai', api_base: origin, api_key: 'upstream-key' },
    '[[routes]]': { model: 'bench', strategy: 'round_robin' },
    '[[routes.targets]]': { provider: 'bench', model: 'upstream-model' },
  }
  return Object.entries(sections)
    .map(([head, entries]) => {
      const lines = Object.entries(entries).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
      return `${[head, ...lines].join('\n')}\n`
    })
    .join('\n')
}

/** The peer accepts only keys of this form. */
function ferroKey(secret: string): string {
  return `fgw_${secret.slice(-32)}`
}
