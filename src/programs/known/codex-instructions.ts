import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asObject, parseObject } from '../../bytes/json.ts'

const limitMs = 20_000
const limits = {
  ...{ headersMs: limitMs, keepAliveMs: limitMs, lingerMs: 0 },
  ...{ connectionsMax: 100, headerBytesMax: 65_536, headersMax: 500 },
}

/**
 * Reads the instructions that the installed Codex sends to a model that it does not know. Codex runs one turn against a listener
 * of ours, in a folder of its own. No file of the user is read or written.
 * @returns undefined if Codex is not installed, or sends its instructions in another form
 */
export async function hearInstructions(): Promise<string | undefined> {
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
          // A 400 ends the turn: Codex does not repeat it.
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
