import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import { fileOf } from '../src/cli/login/kept.ts'
import { npmAgents as agents } from './agents/npm.ts'
import { programOf } from './installs.ts'
import { modelOf, openPlace, type Place, run, scripted } from './place.ts'
import type { Story } from './stories.ts'

/*
 * Agents whose person has signed in (issue 47): each is set up by `triwire setup --login`, holds a token that has expired, and must run
 * `triwire token` once more and have its answer. A stand-in in front of the gateway knows the one token that is good.
 */

const root = dirname(import.meta.dirname)
const limitMs = 120_000
const done = 'That is the answer.'

/** The agents that run a command for a token, with the wire that each is set up for. */
const plots: readonly { client: string; wire: ClientWire; args?: readonly string[] }[] = [
  { client: 'claude-code', wire: 'messages' },
  { client: 'codex', wire: 'responses' },
  { client: 'copilot', wire: 'chat' },
  { client: 'copilot', wire: 'messages' },
]

export const signInStoryCount = plots.length

const tokenOf = (generation: number) => `tri-at-${generation}`

export async function runSignInStory(at: number): Promise<Story> {
  const { client, wire } = plots[at]!
  const name = `Y28 ${client} on the ${wire} wire with an expired token runs triwire token again, once, and has its answer`
  const agent = agents.find((one) => one.client === client)!
  const place = await openPlace()
  const door = await openDoor(place)
  try {
    const { gateway, work, home, env } = place
    gateway.simulator.script(scripted, { reply: done })
    const bin = putCommand(place, door.url)
    const path = [bin, env['PATH']].join(delimiter)
    const own = { ...env, PATH: path }
    const cli = join(root, 'bin/triwire.mjs')
    const args = [
      '--json',
      'setup',
      client,
      '--login',
      'command',
      '--url',
      door.url,
      '--wire',
      wire,
      '--model',
      modelOf(wire),
    ]
    const options = { cwd: work, env: own, limitMs: 30_000 }
    const write = client === 'copilot' ? [] : ['--write', '--yes']
    const said = await run(process.execPath, [cli, ...args, ...write], options)
    if (said.code !== 0) throw new Error(`setup failed: ${said.stderr}`)
    const settings = JSON.parse(said.stdout) as { env?: Record<string, string> }
    const program = programOf(agent.source)
    const ran = await run(program, agent.args('What is the answer?', modelOf(wire), wire), {
      cwd: work,
      env: { ...own, ...agent.env, ...settings.env },
      limitMs,
    })
    const asked = door.asked.filter(({ path }) => path.startsWith('/v1/') && !path.startsWith('/v1/models'))
    const calls = readFileSync(join(home, 'calls'), 'utf8').trim().split('\n').length
    const refused = asked.filter(({ status }) => status === 401).length
    const verdicts: [boolean, string][] = [
      [
        `${ran.stdout}${ran.stderr}`.includes(done),
        `it has no answer: ${ran.stdout.slice(-400)} ${ran.stderr.slice(-400)}`,
      ],
      [refused === 1, `${refused} of its requests were refused`],
      [door.refreshes === 1, `it caused ${door.refreshes} refreshes`],
      [calls >= 2, `it ran the command ${calls} times`],
    ]
    return { name, failures: verdicts.flatMap(([isSo, otherwise]) => (isSo ? [] : [otherwise])) }
  } catch (error) {
    return { name, failures: [String(error)] }
  } finally {
    door.close()
    await place.close()
  }
}

/** The command as an installed one: its first call gives what the agent held for an hour, later ones are the real command. */
function putCommand({ home, env }: Place, url: string): string {
  const bin = join(home, 'bin')
  const folder = join(env['XDG_STATE_HOME']!, 'triwire/sign-ins')
  for (const path of [bin, folder]) mkdirSync(path, { recursive: true })
  const [calls, command] = [join(home, 'calls'), join(bin, 'triwire')]
  const real = `exec '${process.execPath}' '${join(root, 'bin/triwire.mjs')}' "$@"`
  writeFileSync(calls, '')
  writeFileSync(
    command,
    `#!/bin/sh\necho "$*" >> '${calls}'\n[ $(wc -l < '${calls}') -gt 1 ] || { echo ${tokenOf(0)}; exit; }\n${real}\n`,
  )
  chmodSync(command, 0o700)
  const tokens = {
    access_token: tokenOf(0),
    refresh_token: 'tri-rt-0',
    obtained_ms: Date.now() - 3_600_000,
    expires_ms: Date.now() - 1,
  }
  const kept = { url, token_endpoint: `${url}/oauth/token`, tokens }
  writeFileSync(fileOf(url, folder), JSON.stringify(kept), { mode: 0o600 })
  return bin
}

type Door = { url: string; asked: { path: string; status: number }[]; refreshes: number; close(): void }

/** The stand-in: the sign-in protocol, and the gateway for whoever shows the good token as a bearer, and nothing else beside it. */
async function openDoor({ gateway }: Place): Promise<Door> {
  let generation = 0
  const server = createServer((asked, answer) => {
    const path = asked.url!
    const say = (status: number, body: object) => {
      door.asked.push({ path, status })
      answer
        .writeHead(status, { 'content-type': 'application/json', ...(status === 401 && { 'x-should-retry': 'true' }) })
        .end(JSON.stringify(body))
    }
    asked.resume()
    if (path === '/.well-known/oauth-authorization-server') return say(200, {})
    if (path === '/oauth/token') {
      generation = ++door.refreshes
      const tokens = { access_token: tokenOf(generation), refresh_token: `tri-rt-${generation}` }
      return say(200, { ...tokens, token_type: 'Bearer', expires_in: 3_600 })
    }
    const shown = [asked.headers.authorization?.replace(/^Bearer /, ''), asked.headers['x-api-key']].filter(Boolean)
    if (generation === 0 || shown.length === 0 || shown.some((one) => one !== tokenOf(generation)))
      return say(401, { type: 'error', error: { type: 'authentication_error', message: 'the token has expired' } })
    const { host: _, 'x-api-key': __, ...headers } = asked.headers
    const onward = request(gateway.url + path, {
      method: asked.method,
      headers: { ...headers, authorization: `Bearer ${gateway.key}` },
    })
    onward.on('response', (got) => {
      door.asked.push({ path, status: got.statusCode! })
      answer.writeHead(got.statusCode!, got.headers)
      got.pipe(answer)
    })
    onward.on('error', () => answer.destroy())
    asked.pipe(onward)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const door: Door = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    refreshes: 0,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
  return door
}
