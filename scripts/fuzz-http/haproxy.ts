import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../test/support/listen.ts'

/** A running HAProxy, with the ports of its listeners in front of our server and in front of an upstream. */
export type Haproxy = {
  version: string
  /** The ports of the strict listener and of the lenient one (`accept-invalid-http-request`). */
  requestPorts: readonly [number, number]
  responsePort: number
  close(): Promise<void>
}

/** The first word of `x-front`. No client sends it, so a request without it arose from a wrongly read message. */
export const frontSecret = 'front-8d1f'

/**
 * Starts HAProxy (Debian: `apt-get install haproxy`). It adds to each request a header that says what it has read:
 * `x-front: <secret> <method> <length of the body> <unique id>`. All clients share the connections to our server.
 * @returns undefined if it is not installed
 */
export async function startHaproxy(serverPort: number, upstreamPort: number): Promise<Haproxy | undefined> {
  const shown = spawnSync('haproxy', ['-v'], { encoding: 'utf8' })
  if (shown.error) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'triwire-fuzz-http-'))
  const [strict, lenient, response] = [await freePort(), await freePort(), await freePort()]
  const front = `http-request set-header x-front "${frontSecret} %[method] %[req.body_len] %[uuid()]"`
  const config = join(folder, 'haproxy.cfg')
  writeFileSync(
    config,
    `global
  maxconn 1000
defaults
  mode http
  timeout connect 2s
  timeout client 4s
  timeout server 4s
  timeout http-request 4s
  option http-buffer-request
frontend strict
  bind 127.0.0.1:${strict}
  ${front}
  default_backend ours
frontend lenient
  bind 127.0.0.1:${lenient}
  option accept-invalid-http-request
  ${front}
  default_backend ours
backend ours
  http-reuse always
  server ours 127.0.0.1:${serverPort}
frontend responses
  bind 127.0.0.1:${response}
  default_backend upstream
backend upstream
  server upstream 127.0.0.1:${upstreamPort}
`,
  )
  const child = spawn('haproxy', ['-db', '-f', config], { stdio: ['ignore', 'ignore', 'inherit'] })
  for (const port of [strict, lenient, response]) await untilReached(port, child)
  return {
    version: shown.stdout.split('\n', 1)[0]!,
    requestPorts: [strict, lenient],
    responsePort: response,
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode === null && child.kill()) await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function untilReached(port: number, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 100 && child.exitCode === null; tries++) {
    const isReached = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (isReached) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('haproxy does not start')
}
