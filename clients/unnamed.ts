import { request as ask, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { asObject } from '../src/bytes/json.ts'
import { checkScript, type Script } from '../src/simulator/script.ts'
import type { Agent, ToolCall } from './agents/agent.ts'
import { npmAgents } from './agents/npm.ts'
import { bill } from './bill.ts'
import { chooseAgents } from './chosen-agents.ts'
import { install, programOf } from './installs.ts'
import { modelOf, openPlace, run, scripted, setUp } from './place.ts'

// node bin/node.mjs clients/unnamed.ts [cline cn droid …]
//
// Compares the cost of a task of six turns, from the ledger, for agents on the chat wire with a messages model (A2,
// ruling T5). "Named": a proxy adds a conversation key to each request. "Unnamed": no request has one. With `on_key`,
// the gateway sets cache marks only for a key; with `auto`, the default, also without one.

const limitMs = 120_000
const agents = chooseAgents(npmAgents, 'unnamed.ts', ['cline', 'cn', 'droid'])
install(agents.map(({ source }) => source))
console.log('| Agent | unnamed, `on_key` | cached | unnamed, `auto` | cached | named | cached | unnamed ÷ named |')
console.log('|---|---|---|---|---|---|---|---|')
for (const agent of agents) {
  const before = await measure(agent, false, 'on_key')
  const [unnamed, named] = [await measure(agent, false), await measure(agent, true)]
  const cells = [before, unnamed, named].flatMap(({ cost, hitRate }) => [cost, `${Math.round(hitRate * 100)} %`])
  const ratio = Number(unnamed.cost) / Number(named.cost)
  console.log(`| ${[agent.client, ...cells, ratio.toFixed(3)].join(' | ')} |`)
  if (ratio > 1.15) process.exitCode = 1
}
process.exit()

async function measure(agent: Agent, isNamed: boolean, autoCache?: 'on_key'): Promise<ReturnType<typeof bill>> {
  const place = await openPlace(autoCache)
  const { gateway, work, env } = place
  const between = await standBetween(gateway.url, isNamed)
  try {
    gateway.simulator.script(scripted, taskOf(agent, work))
    const through = { ...place, gateway: { ...gateway, url: between.url } }
    const model = modelOf('messages')
    const settings = await setUp(through, agent.setup ?? agent.client, 'chat', model)
    const options = { cwd: work, env: { ...env, ...agent.env, ...settings.env }, limitMs }
    const { code } = await run(programOf(agent.source), agent.args('Do the task.', model, 'chat'), options)
    const asked = gateway.simulator.requests.filter(({ json }) => asObject(json)?.['model'] === scripted).length
    if (code !== 0 || asked !== 6)
      throw new Error(`${agent.client} ended with ${code}, the model was asked ${asked} times`)
    return bill(place)
  } finally {
    between.close()
    await place.close()
  }
}

/**
 * Returns the model's script: two parallel calls write files, three single calls and two parallel calls follow, and an
 * answer.
 */
function taskOf({ tools }: Agent, work: string): Script {
  const [first, second] = [join(work, 'first.txt'), join(work, 'second.txt')]
  const calls: ToolCall[][] = [
    [tools.write(first, 'one'), tools.write(second, 'two')],
    [tools.run('cat first.txt second.txt; sleep 0.5')],
    [tools.read(first)],
    [tools.run(`printf 'é %s\\n' '日本'; sleep 0.5`)],
    [tools.run('wc -c first.txt; sleep 0.5'), tools.run('wc -c second.txt; sleep 0.5')],
  ]
  const says = 'The task is done.'
  const end = { reply: says, ...(tools.done && { tool_calls: [tools.done(says)] }) }
  return checkScript({ turns: [...calls.map((tool_calls) => ({ tool_calls })), end] })
}

/** Starts a proxy that passes everything on, and sets the header with the conversation key, or removes it. */
async function standBetween(target: string, isNamed: boolean): Promise<{ url: string; close(): void }> {
  const { hostname, port } = new URL(target)
  const server = createServer((incoming, outgoing) => {
    const { 'x-session-id': _, ...headers } = incoming.headers
    if (isNamed) headers['x-session-id'] = 'one-conversation'
    const onward = ask({ hostname, port, method: incoming.method, path: incoming.url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    incoming.pipe(onward)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
