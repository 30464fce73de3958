import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { asObject } from '../src/bytes/json.ts'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import type { RecordedRequest } from '../src/simulator/simulator.ts'
import { type Agent, type FailureName, failureNames } from './agents/agent.ts'
import { bill } from './bill.ts'
import type { After, Cell } from './cell.ts'
import { programOf, versionOf } from './installs.ts'
import { modelOf, openPlace, type Place, type Ran, run, scripted, setUp } from './place.ts'
import { findWrongUsage } from './told.ts'

const limitMs = 240_000

/** Appended to commands, because one agent sometimes loses the output of a command that ends at once. */
const pause = '; sleep 0.5'

/** The file that an agent writes if it runs a tool call that was cut. */
const halfFile = 'half.txt'

/**
 * Runs a task of four turns: the agent writes two files in parallel, runs two commands in parallel, reads a file, and
 * answers. The simulator plays the model; everything else is real. If the task succeeds, it is repeated with a model
 * that fails once in each way.
 */
export async function runAgent(agent: Agent, clientWire: ClientWire, modelWire: ClientWire): Promise<Cell> {
  const started = performance.now()
  const about = {
    client: agent.client,
    package: agent.source.package,
    version: versionOf(agent.source),
    clientWire,
    modelWire,
  }
  const task = await attempt(agent, clientWire, modelWire, [])
  const isShort = task.failures.length > 0 || process.env['TRIWIRE_CLIENTS_ROUNDS'] === 'task'
  const once = isShort ? { failures: [] } : await failOnce(agent, clientWire, modelWire)
  const seconds = Math.round((performance.now() - started) / 100) / 10
  return { ...about, ...task.bill, ...once, failures: [...task.failures, ...once.failures], omitted: [], seconds }
}

type Attempt = { failures: string[]; bill: ReturnType<typeof bill> }

/**
 * Tries the failures that the agent should survive in one run, and the others one by one. If that run fails, tries all
 * one by one.
 */
async function failOnce(agent: Agent, clientWire: ClientWire, modelWire: ClientWire) {
  // An agent without tools has no call that could be cut.
  const tried = failureNames.filter((name) => !(agent.edit && name === 'cut in a call'))
  const deadly = tried.filter((name) => agent.givesUp?.[clientWire]?.includes(name))
  const others = tried.filter((name) => !deadly.includes(name))
  const after: Partial<Record<FailureName, After>> = {}
  const failures: string[] = []
  const together = await attempt(agent, clientWire, modelWire, others)
  if (together.failures.length === 0) for (const name of others) after[name] = 'recovers'
  for (const name of together.failures.length === 0 ? deadly : tried) {
    const alone = await attempt(agent, clientWire, modelWire, [name])
    const ranHalf = alone.failures.some((text) => text.startsWith('ran half'))
    after[name] = alone.failures.length === 0 ? 'recovers' : ranHalf ? 'runs half a call' : 'gives up'
    const isExpected = deadly.includes(name) && (!ranHalf || agent.runsHalfCalls === true)
    if (alone.failures.length > 0 && !isExpected)
      failures.push(...alone.failures.map((text) => `when the model failed once (${name}): ${text}`))
  }
  // It is also a failure if the agent survives each of them alone, but not all in one run.
  if (together.failures.length > 0 && failures.length === 0 && others.every((name) => after[name] === 'recovers'))
    failures.push(...together.failures.map((text) => `after all of ${others.join(', ')}: ${text}`))
  return { after, failures }
}

/** Runs the task once, with a model that fails in these ways. */
async function attempt(
  agent: Agent,
  clientWire: ClientWire,
  modelWire: ClientWire,
  failing: readonly FailureName[],
): Promise<Attempt> {
  const place = await openPlace()
  try {
    const { gateway, work } = place
    const token = randomBytes(8).toString('hex')
    const [first, second] = [join(work, 'first.txt'), join(work, 'second.txt')]
    gateway.simulator.script(scripted, scriptOf(agent, { first, second, token }, failing))
    const ran = await start(agent, place, clientWire, modelWire)
    const violations = gateway.takeViolations()
    const failures = [
      ...findRun(ran, token),
      ...findFiles({ [first]: `one ${token}`, [second]: 'two' }),
      ...(existsSync(join(work, halfFile))
        ? [`the agent ran a tool call that was cut: the file ${halfFile} exists`]
        : []),
      ...findUpstream(place, agent, clientWire, modelWire, token, failing.length > 0),
      ...violations,
      ...findWrongUsage(place),
    ]
    if (failures.length > 0) failures.push(...(await findRefusals(place)), tail(ran))
    if (failures.length > 0 && failing.length === 0) failures.push(...findTools(place))
    return { failures, bill: bill(place) }
  } catch (error) {
    return { failures: [String(error)], bill: bill(place) }
  } finally {
    await place.close()
  }
}

async function start(agent: Agent, place: Place, clientWire: ClientWire, modelWire: ClientWire): Promise<Ran> {
  const { work, env } = place
  const model = modelOf(modelWire)
  const settings = await setUp(place, agent.setup ?? agent.client, clientWire, model)
  const program = programOf(agent.source)
  const options = { cwd: work, env: { ...env, ...agent.env, ...settings.env }, limitMs }
  const task = 'Write first.txt and second.txt, show them with a command, then read first.txt back.'
  const file = agent.file ? [join(import.meta.dirname, agent.file)] : []
  return run(program, [...file, ...agent.args(task, model, clientWire)], options)
}

type Props = { first: string; second: string; token: string }

/**
 * Returns the model's script by turns. Refusals come before the first three turns, one each, and cut streams before the
 * last.
 */
function scriptOf({ tools, edit }: Agent, { first, second, token }: Props, failing: readonly FailureName[]): object {
  const half = tools.run(`echo half > ${halfFile}`)
  const failures: Record<FailureName, object> = {
    '429': { status: 429, retry_after: 1 },
    '529': { status: 529 },
    '500': { status: 500 },
    'cut in text': { reply: 'It begins and does not come to its end.', cut: { after_events: 5, how: 'reset' } },
    'cut in a call': { tool_calls: [half], cut: { after_events: -3, how: 'reset' } },
  }
  const says = `The task is done: ${token}.`
  if (edit) {
    const before = failing.filter((name) => name !== 'cut in a call').map((name) => failures[name])
    const reply = `${edit('first.txt', `one ${token}`)}\n${edit('second.txt', 'two')}\n${says}`
    return { reply, ...(before.length > 0 && { first: before }) }
  }
  const write = [tools.write(first, `one ${token}`), tools.write(second, 'two')]
  const show = [tools.run(`cat first.txt second.txt; echo " sum $((40+2))"${pause}`), tools.run(`echo beside${pause}`)]
  const turns: object[] = [
    { reasoning: 'Two files are to be written.', tool_calls: write },
    { tool_calls: show },
    { reasoning: 'Now read it back.', tool_calls: [tools.read(first)] },
    { reply: says, ...(tools.done && { tool_calls: [tools.done(says)] }) },
  ]
  const places: Record<FailureName, number> = { '429': 0, '529': 1, '500': 2, 'cut in text': -1, 'cut in a call': -1 }
  return {
    turns: turns.map((turn, index) => {
      const before = failing.filter((name) => places[name] === index || places[name] === index - turns.length)
      return before.length === 0 ? turn : { ...turn, first: before.map((name) => failures[name]) }
    }),
  }
}

function findRun({ code, stdout, stderr, isLate }: Ran, token: string): string[] {
  if (isLate) return [`not done after ${limitMs / 1000} s`]
  return [
    ...(code === 0 ? [] : [`exit code ${code}`]),
    ...(`${stdout}${stderr}`.includes(token) ? [] : ['does not show the answer']),
  ]
}

function findFiles(files: Record<string, string>): string[] {
  return Object.entries(files).flatMap(([path, text]) => {
    try {
      const found = readFileSync(path, 'utf8')
      return found.trimEnd() === text ? [] : [`${basename(path)} holds ${JSON.stringify(found)}`]
    } catch {
      return [`${basename(path)} was not written`]
    }
  })
}

const paths = { messages: '/v1/messages', chat: '/v1/chat/completions', responses: '/v1/responses' }

/**
 * Lists what is wrong with the requests to the model: their number, wire, streaming, tool results, key or reasoning.
 */
function findUpstream(
  { gateway }: Place,
  agent: Agent,
  clientWire: ClientWire,
  modelWire: ClientWire,
  token: string,
  isFailing: boolean,
): string[] {
  const asked = gateway.simulator.requests.filter((request) => bodyOf(request)['model'] === scripted)
  const last = asked.at(-1)
  if (!last) return ['the model was never asked']
  const results = agent.edit ? [] : [`one ${token}`, 'sum 42', 'beside']
  const keys = new Set(asked.map((request) => bodyOf(request)['prompt_cache_key']))
  // On the same wire the gateway passes the client's body on, in which only clients of the responses wire have a key.
  const isKeyed = agent.keyed.includes(clientWire) && (clientWire !== modelWire || clientWire === 'responses')
  const isStreaming = !agent.whole?.includes(clientWire)
  const turns = agent.edit ? 1 : 4
  const upstream = gateway.simulator.requests.length
  const isAnswered = (request: RecordedRequest) => isFailing || (request.status === 200 && !request.closedEarly)
  const wants: [boolean, string][] = [
    [isFailing || asked.length === turns, `the model was asked ${asked.length} times, not ${turns}`],
    [asked.every(({ path }) => path === paths[modelWire]), 'asked on another wire than the model’s'],
    [asked.every(isAnswered), `the model refused, or was aborted: ${asked.map(({ status }) => status).join(', ')}`],
    [
      // One agent asks for JSON answers after its streams were cut.
      isFailing || asked.every((request) => (bodyOf(request)['stream'] === true) === isStreaming),
      isStreaming ? 'asked without a stream' : 'asked for a stream',
    ],
    ...results.map((text): [boolean, string] => [
      last.body.includes(text),
      `no result of a tool says "${text}": ${last.body.slice(last.body.lastIndexOf('$((40+2))')).slice(0, 400)}`,
    ]),
    [
      !isKeyed || modelWire === 'messages' || (keys.size === 1 && !keys.has(undefined)),
      `the requests to the model have ${keys.size} different keys${keys.has(undefined) ? ' (no key counts as one)' : ''}`,
    ],
    [
      !isKeyed || modelWire !== 'messages' || asked.every(({ body }) => body.includes('"cache_control"')),
      'not all requests to the model have a cache mark',
    ],
    [
      // Only the first turn counts: one agent stops asking after thinking without a signature, which it cannot send
      // back.
      !agent.reasons.includes(clientWire) || asksReasoning(bodyOf(asked[0]!)),
      'the first request does not ask for reasoning',
    ],
    // Only the client may retry: the gateway has no second upstream account here, and asks no account twice.
    [upstream <= gateway.answers.length, `the gateway asked ${upstream} times for ${gateway.answers.length} requests`],
  ]
  return wants.flatMap(([isSo, otherwise]) => (isSo ? [] : [otherwise]))
}

function asksReasoning(body: Record<string, unknown>): boolean {
  return ['thinking', 'reasoning_effort', 'reasoning'].some((field) => body[field] !== undefined)
}

/** Lists what the gateway refused, as reasons for a failure. */
async function findRefusals({ gateway }: Place): Promise<string[]> {
  const refused = (await gateway.logLines()).filter((line) => Number(line['status']) >= 400)
  return [...new Set(refused.map((line) => `${line['path']} ${line['status']} ${line['code']} ${line['cause'] ?? ''}`))]
}

/** Lists the agent's tools for a failure, because another version may have renamed them. */
function findTools({ gateway }: Place): string[] {
  const tools = gateway.simulator.requests.map((request) => bodyOf(request)['tools']).find(Array.isArray) ?? []
  const names = tools.map((tool) =>
    JSON.stringify(tool)
      .replace(/"description":"(?:[^"\\]|\\.)*",?/g, '')
      .slice(0, 300),
  )
  return names.length === 0 ? [] : [`it offers ${names.join(' ')}`]
}

function tail({ stdout, stderr }: Ran): string {
  return `it said: ${`${stdout.slice(-600)} ${stderr.slice(-600)}`.replaceAll(/\s+/g, ' ').trim()}`
}

function bodyOf({ json }: RecordedRequest): Record<string, unknown> {
  return asObject(json) ?? {}
}
