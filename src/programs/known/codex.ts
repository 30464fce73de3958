import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asObject, parseObject } from '../../bytes/json.ts'
import { type Access, json, keyVariable, type Program, type SettingsFile } from '../program.ts'

const catalogFile = 'triwire-models.json'
const efforts = ['low', 'medium', 'high']

/**
 * Codex warns about an unknown model and limits its window to 272,000 tokens. To avoid that, we write an entry in a
 * model catalog of Codex's own format. The entry must contain instructions for the agent. We use those that the
 * installed Codex sends to unknown models.
 */
export const codex: Program = {
  wires: ['responses'],
  assumes: '272,000 tokens',
  runsTokenCommand: true,
  asks: {
    hear: hearInstructions,
    otherwise:
      'codex is not installed on this machine, or too old. It will warn that it has no metadata of the model, and use a window of at most 272,000 tokens. Run this again where codex is installed',
    ifPrinted:
      'with --write Codex also gets an entry for the model. Without the entry it warns that it has no metadata, and uses a window of at most 272,000 tokens',
  },
  settings(access) {
    const catalog = catalogOf(access)
    return {
      files: [configOf(access, catalog !== undefined), ...(catalog ? [catalog] : [])],
      ...(!access.tokenCommand && { env: { [keyVariable]: access.key } }),
      commands: [['codex']],
    }
  },
}

function configOf({ origin, model, models, contextWindow, tokenCommand }: Access, hasCatalog: boolean): SettingsFile {
  // Without a catalog, Codex offers only one of our models: the configured one.
  const searches = (hasCatalog ? models : models.slice(0, 1)).every((one) => one.hostedToolsWire === 'responses')
  const text = `model = ${JSON.stringify(model)}
model_provider = "triwire"
${contextWindow === undefined ? '' : `model_context_window = ${contextWindow}\n`}${hasCatalog ? `model_catalog_json = "./${catalogFile}"\n` : ''}${searches ? '' : '# Hosted web search runs at the model\'s provider: a model that is translated for cannot have it.\nweb_search = "disabled"\n'}
[model_providers.triwire]
name = "triwire"
base_url = ${JSON.stringify(`${origin}/v1`)}
${tokenCommand ? `auth = { command = ${JSON.stringify(tokenCommand[0])}, args = ${JSON.stringify(tokenCommand.slice(1))} }` : `env_key = "${keyVariable}"`}
wire_api = "responses"
`
  // Settings of an earlier setup are removed, because the catalog that they name may lack this model.
  return {
    path: '~/.codex/config.toml',
    format: 'toml',
    text,
    without: [
      ...[['model_context_window'], ['model_catalog_json'], ['web_search']],
      // Codex refuses a file that has both settings (0.171.0). So the setting that `text` does not contain is removed.
      ...['env_key', 'auth'].map((name) => ['model_providers', 'triwire', name]),
    ],
  }
}

/** Makes catalog entries. Except for windows and efforts, they have the values that Codex gives to unknown models. */
function catalogOf({ told, models }: Access): SettingsFile | undefined {
  if (told === undefined) return undefined
  const entries = models.map(({ model, contextWindow }, priority) => ({
    slug: model,
    display_name: model,
    description: 'By triwire',
    context_window: contextWindow,
    max_context_window: contextWindow,
    supported_reasoning_levels: efforts.map((effort) => ({ effort, description: effort })),
    shell_type: 'unified_exec',
    truncation_policy: { mode: 'tokens', limit: 10_000 },
    visibility: 'list',
    supported_in_api: true,
    priority,
    support_verbosity: false,
    supports_parallel_tool_calls: true,
    experimental_supported_tools: [],
    input_modalities: ['text', 'image'],
    base_instructions: told,
  }))
  return { path: `~/.codex/${catalogFile}`, format: 'own', text: json({ models: entries }) }
}

const limitMs = 20_000
const limits = {
  ...{ headersMs: limitMs, keepAliveMs: limitMs, lingerMs: 0 },
  ...{ connectionsMax: 100, headerBytesMax: 65_536, headersMax: 500 },
}

/**
 * Reads the instructions that the installed Codex sends to a model that it does not know. Codex runs one turn in a
 * temporary folder, and a listener of ours receives its request. No file of the user is read or written.
 * @returns undefined if Codex is not installed, or sends its instructions in another form
 */
async function hearInstructions(): Promise<string | undefined> {
  const { createEdge } = await import('../../http/server.ts')
  const folder = mkdtempSync(join(tmpdir(), 'triwire-codex-'))
  const heard = Promise.withResolvers<string | undefined>()
  const edge = createEdge({
    limits,
    handle(exchange) {
      const pieces: Buffer[] = []
      exchange.body.read({
        take: (piece) => void pieces.push(piece),
        whole() {
          // Codex does not repeat a request that got a 400, so the turn ends.
          exchange.answer(400, 'content-type: application/json\r\n', '{"error":{"message":"heard"}}')
          if (exchange.method === 'POST') heard.resolve(readInstructions(Buffer.concat(pieces).toString()))
        },
        broken: () => exchange.destroy(),
        gone() {},
      })
    },
    formError: () => ({ lines: '', body: '' }),
  })
  const { server } = edge
  try {
    server.listen(0, '127.0.0.1')
    await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject))
    const { port } = server.address() as AddressInfo
    return await turn(folder, port, heard.promise)
  } finally {
    server.close()
    edge.closeAll()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function turn(folder: string, port: number, heard: Promise<string | undefined>): Promise<string | undefined> {
  const provider = `{name="triwire",base_url="http://127.0.0.1:${port}/v1",wire_api="responses"}`
  const settings = ['model="triwire-model"', 'model_provider="triwire"', `model_providers.triwire=${provider}`]
  const more = ['analytics.enabled=false', 'check_for_update_on_startup=false']
  const options = [...settings, ...more].flatMap((setting) => ['-c', setting])
  const child = spawn('codex', ['exec', '--skip-git-repo-check', ...options, 'hello'], {
    cwd: folder,
    env: { ...process.env, CODEX_HOME: folder },
    stdio: 'ignore',
    timeout: limitMs,
  })
  const ended = new Promise<undefined>((resolve) => {
    child.once('error', () => resolve(undefined)).once('close', () => resolve(undefined))
  })
  const instructions = await Promise.race([heard, ended])
  if (child.exitCode === null && child.pid !== undefined) {
    child.kill()
    await ended
  }
  return instructions
}

/** Returns the text of the first message to the model; undefined if it has more than one part. */
function readInstructions(text: string): string | undefined {
  const body = parseObject(text)
  const [first] = Array.isArray(body?.['input']) ? body['input'].map(asObject) : []
  const [part, ...rest] = Array.isArray(first?.['content']) ? first['content'].map(asObject) : []
  if (first?.['role'] !== 'developer' || rest.length > 0) return undefined
  return typeof part?.['text'] === 'string' ? part['text'] : undefined
}
