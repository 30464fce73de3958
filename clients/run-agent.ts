import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asObject } from '../src/bytes/json.ts'
import type { WireName } from '../src/catalog/model.ts'
import type { RecordedRequest } from '../src/simulator/simulator.ts'
import type { Agent } from './agents.ts'
import { bill } from './bill.ts'
import type { Cell } from './cell.ts'
import { modelOf, openPlace, type Place, type Ran, run, scripted, setUp } from './place.ts'

const limitMs = 150_000

/** One agent at times loses what a command says that ends at once. */
const pause = '; sleep 0.5'

/**
 * One task of four turns: two files are written, in parallel; a command that reads them is run beside another; a file is
 * read back; an answer is given. The simulator plays the model; everything else is real.
 */
export async function runAgent(agent: Agent, clientWire: WireName, modelWire: WireName): Promise<Cell> {
  const place = await openPlace()
  const started = performance.now()
  try {
    const { gateway, work, env } = place
    const settings = await setUp(place, agent.client, clientWire, modelOf(modelWire))
    const token = randomBytes(8).toString('hex')
    const [first, second] = [join(work, 'first.txt'), join(work, 'second.txt')]
    const { tools } = agent
    gateway.simulator.script(scripted, {
      turns: [
        {
          reasoning: 'Two files are to be written.',
          tool_calls: [tools.write(first, `one ${token}`), tools.write(second, 'two')],
        },
        {
          tool_calls: [
            tools.run(`cat first.txt second.txt; echo " sum $((40+2))"${pause}`),
            tools.run(`echo beside${pause}`),
          ],
        },
        { reasoning: 'Now read it back.', tool_calls: [tools.read(first)] },
        { reply: `The task is done: ${token}.` },
      ],
    })
    const task = 'Write first.txt and second.txt, show them with a command, then read first.txt back.'
    const args = agent.args(task, modelOf(modelWire))
    const ran = await run(agent.bin, args, {
      cwd: work,
      env: { ...env, ...agent.env, ...settings.env },
      limitMs,
    })
    const failures = [
      ...findRun(ran, token),
      ...findFiles({ [first]: `one ${token}`, [second]: 'two' }),
      ...findUpstream(place, agent, clientWire, modelWire, token),
      ...gateway.takeViolations(),
    ]
    if (failures.length > 0) failures.push(...(await findRefusals(place)), tail(ran))
    return cellOf(failures)
  } catch (error) {
    return cellOf([String(error)])
  } finally {
    await place.close()
  }

  function cellOf(failures: string[]): Cell {
    const seconds = (performance.now() - started) / 1000
    const about = { client: agent.client, package: agent.package, clientWire, modelWire }
    return { ...about, failures, omitted: [], ...bill(place), seconds }
  }
}

function findRun({ code, stdout, isLate }: Ran, token: string): string[] {
  if (isLate) return [`not done after ${limitMs / 1000} s`]
  return [
    ...(code === 0 ? [] : [`ended with ${code}`]),
    ...(stdout.includes(`The task is done: ${token}.`) ? [] : ['does not show the answer']),
  ]
}

function findFiles(files: Record<string, string>): string[] {
  return Object.entries(files).flatMap(([path, text]) => {
    try {
      const found = readFileSync(path, 'utf8')
      return found.trimEnd() === text ? [] : [`${path} holds ${JSON.stringify(found)}`]
    } catch {
      return [`${path} was not written`]
    }
  })
}

const paths = { messages: '/v1/messages', chat: '/v1/chat/completions', responses: '/v1/responses' }

/** What the model was asked, in its own wire: every turn, streamed, with the results of the tools and one key. */
function findUpstream(
  { gateway }: Place,
  agent: Agent,
  clientWire: WireName,
  modelWire: WireName,
  token: string,
): string[] {
  const asked = gateway.simulator.requests.filter((request) => bodyOf(request)['model'] === scripted)
  const last = asked.at(-1)
  if (!last) return ['the model was never asked']
  const results = [`one ${token}`, 'sum 42', 'beside']
  const keys = new Set(asked.map((request) => bodyOf(request)['prompt_cache_key']))
  // Where the wire is the same the request is the client's own, and only this wire's clients put the key into it.
  const isKeyed = agent.keyed.includes(clientWire) && (clientWire !== modelWire || clientWire === 'responses')
  const wants: [boolean, string][] = [
    [asked.length === 4, `the model was asked ${asked.length} times, not 4`],
    [asked.every(({ path }) => path === paths[modelWire]), 'asked on another wire than the model’s'],
    [asked.every(({ status }) => status === 200), `the model refused: ${asked.map(({ status }) => status).join(', ')}`],
    [asked.every((request) => bodyOf(request)['stream'] === true), 'asked without a stream'],
    [asked.every((request) => !request.closedEarly), 'an answer was left before its end'],
    ...results.map((text): [boolean, string] => [
      last.body.includes(text),
      `no result of a tool says "${text}": ${last.body.slice(last.body.lastIndexOf('$((40+2))')).slice(0, 400)}`,
    ]),
    [
      !isKeyed || modelWire === 'messages' || (keys.size === 1 && !keys.has(undefined)),
      `its conversation has ${keys.size} keys upstream, of ${keys.has(undefined) ? 'none' : 'its own'}`,
    ],
    [
      !isKeyed || modelWire !== 'messages' || asked.every(({ body }) => body.includes('"cache_control"')),
      'nothing is marked for the cache',
    ],
    [
      // Of the first turn only: one agent asks no more once it has thinking without a signature, which it cannot send back.
      !agent.reasons.includes(clientWire) || asksReasoning(bodyOf(asked[0]!)),
      'reasoning was not asked of the model',
    ],
  ]
  return wants.flatMap(([isSo, otherwise]) => (isSo ? [] : [otherwise]))
}

function asksReasoning(body: Record<string, unknown>): boolean {
  return ['thinking', 'reasoning_effort', 'reasoning'].some((field) => body[field] !== undefined)
}

/** What the gateway refused, as a reason for the table. */
async function findRefusals({ gateway }: Place): Promise<string[]> {
  const refused = (await gateway.logLines()).filter((line) => Number(line['status']) >= 400)
  return [...new Set(refused.map((line) => `${line['path']} ${line['status']} ${line['code']} ${line['cause'] ?? ''}`))]
}

function tail({ stdout, stderr }: Ran): string {
  return `it said: ${`${stdout.slice(-600)} ${stderr.slice(-600)}`.replaceAll(/\s+/g, ' ').trim()}`
}

function bodyOf({ json }: RecordedRequest): Record<string, unknown> {
  return asObject(json) ?? {}
}
