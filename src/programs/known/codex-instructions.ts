import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { asObject } from '../../bytes/json.ts'

const limitMs = 20_000

/**
 * Reads the instructions that the installed Codex sends to a model that it does not know. Codex runs one turn against a listener
 * of ours, in a folder of its own. No file of the user is read or written.
 * @returns undefined if Codex is not installed, or sends its instructions in another form
 */
export async function hearInstructions(): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-codex-'))
  const server = createServer()
  try {
    server.listen(0, '127.0.0.1')
    await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject))
    const { port } = server.address() as AddressInfo
    const heard = new Promise<string | undefined>((resolve) => {
      server.on('request', async (request, response) => {
        const instructions = await readInstructions(request).catch(() => undefined)
        // Codex ends its turn after a 400, without another try.
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"heard"}}')
        if (request.method === 'POST') resolve(instructions)
      })
    })
    return await turn(folder, port, heard)
  } finally {
    server.close()
    server.closeAllConnections()
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
async function readInstructions(request: IncomingMessage): Promise<string | undefined> {
  const body = asObject(JSON.parse(await text(request)))
  const [first] = Array.isArray(body?.['input']) ? body['input'].map(asObject) : []
  const [part, ...rest] = Array.isArray(first?.['content']) ? first['content'].map(asObject) : []
  if (first?.['role'] !== 'developer' || rest.length > 0) return undefined
  return typeof part?.['text'] === 'string' ? part['text'] : undefined
}
