import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { request as ask, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type ClientWire, clientWireNames } from '../src/catalog/wire-names.ts'
import { checkScript } from '../src/simulator/script.ts'
import type { Agent } from './agents/agent.ts'
import { npmAgents } from './agents/npm.ts'
import { chooseAgents } from './chosen-agents.ts'
import { install, programOf, versionOf } from './installs.ts'
import { modelOf, openPlace, run, scripted, setUp } from './place.ts'

// node bin/node.mjs clients/openers.ts [claude-code codex opencode copilot …]
//
// Records the requests of agents in a task of three turns, on each of their wires, for test/wires/openers.test.ts. A
// digest replaces each text of more than 60 characters. So a recording shows where a text is repeated, but has no
// vendor's prompt.

const folder = join(import.meta.dirname, '../test/fixtures/agents')
const agents = chooseAgents(npmAgents, 'openers.ts', [])
if (!process.env['TRIWIRE_CLIENTS_INSTALLED']) install(agents.map(({ source }) => source))
mkdirSync(folder, { recursive: true })
for (const agent of agents)
  for (const wire of clientWireNames.filter((one) => agent.wires.includes(one))) {
    const requests = await record(agent, wire)
    const about = { client: agent.client, version: versionOf(agent.source), wire, requests }
    writeFileSync(join(folder, `${agent.client}-${wire}.json`), `${JSON.stringify(about, null, 1)}\n`)
    console.log(`${agent.client}, ${wire}: ${requests.length} requests`)
  }
process.exit()

/** Runs an agent that writes two files in parallel, reads them in parallel, and answers. @returns its requests */
async function record(agent: Agent, wire: ClientWire): Promise<unknown[]> {
  const { tools } = agent
  const place = await openPlace()
  const { gateway, work, env } = place
  const between = await standBetween(gateway.url)
  try {
    const [first, second] = [join(work, 'first.txt'), join(work, 'second.txt')]
    const end = { reply: 'Done.', ...(tools.done && { tool_calls: [tools.done('Done.')] }) }
    const calls = [
      [tools.write(first, 'one'), tools.write(second, 'two')],
      [tools.run(`cat ${first}; sleep 0.5`), tools.run(`cat ${second}; sleep 0.5`)],
    ]
    gateway.simulator.script(scripted, checkScript({ turns: [...calls.map((tool_calls) => ({ tool_calls })), end] }))
    const through = { ...place, gateway: { ...gateway, url: between.url } }
    const model = modelOf(wire)
    const settings = await setUp(through, agent.setup ?? agent.client, wire, model)
    const options = { cwd: work, env: { ...env, ...agent.env, ...settings.env }, limitMs: 120_000 }
    const { code, stderr } = await run(programOf(agent.source), agent.args('Do the task.', model, wire), options)
    if (code !== 0) throw new Error(`${agent.client} ended with ${code}: ${stderr.slice(-500)}`)
    return between.bodies.map(shorten)
  } finally {
    between.close()
    await place.close()
  }
}

/** Replaces long texts by digests, at any depth. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length <= 60 ? value : `sha256 ${createHash('sha256').update(value).digest('base64url')}`
  if (Array.isArray(value)) return value.map(shorten)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shorten(one)]))
}

/** Starts a proxy that passes everything on, and keeps the bodies of inference requests. */
async function standBetween(target: string) {
  const { hostname, port } = new URL(target)
  const bodies: unknown[] = []
  const server = createServer(async (incoming, outgoing) => {
    const { method, url, headers } = incoming
    const body = Buffer.concat(await incoming.toArray())
    if (/\/(messages|chat\/completions|responses)(\?|$)/.test(url!)) bodies.push(JSON.parse(body.toString()))
    const onward = ask({ hostname, port, method, path: url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    onward.end(body)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const close = () => void server.close().closeAllConnections()
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies, close }
}
