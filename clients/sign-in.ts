import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import { fileOf } from '../src/cli/login/kept.ts'
import { openTestSession, type TestSession } from '../test/support/sessions.ts'
import { npmAgents as agents } from './agents/npm.ts'
import { programOf } from './installs.ts'
import { modelOf, openPlace, type Place, run, scripted } from './place.ts'
import type { Story } from './stories.ts'

/*
 * Agents of a person who has signed in (issue 47), set up by `triwire setup --login`. Those that run a command for
 * their token have one that has expired: they must run `triwire token` again and get their answer. opencode is set up
 * by the gateway, and runs the command only once.
 */

const cli = join(dirname(import.meta.dirname), 'bin/triwire.mjs')
const limitMs = 120_000
/** The most time for the command if several agents run it at once and one of them refreshes the token. */
const tokenMsMax = 2_000
const done = 'That is the answer.'
/** The variable with the number of an agent, if several run at once. */
const agentVariable = 'TRIWIRE_TEST_AGENT'

/**
 * A run of an agent that runs a command for its token.
 * @property wire that it is set up for
 * @property isNext obeys `x-should-retry: false`: it does not repeat the request, and runs the command for its next one
 * @property isEach runs the command before each request; so the expired token is in the file of `triwire token`, not in
 * the agent
 * @property isKept runs the command once, and keeps what it printed
 * @property agents the number of agents that run at once
 */
type Plot = { client: string; wire: ClientWire; isKept?: true; isNext?: true; isEach?: true; agents?: number }

const plots: readonly Plot[] = [
  { client: 'claude-code', wire: 'messages' },
  { client: 'claude-code', wire: 'messages', agents: 8 },
  { client: 'codex', wire: 'responses' },
  { client: 'codex', wire: 'responses', agents: 8 },
  { client: 'copilot', wire: 'chat', isNext: true },
  { client: 'copilot', wire: 'messages', isNext: true },
  { client: 'copilot', wire: 'chat', isEach: true },
  { client: 'opencode', wire: 'chat', isKept: true },
]

export const signInStoryCount = plots.length

const config = {
  sign_in: {
    ...{ issuer: 'https://idp.example', client_id: 'triwire' },
    rules: [{ groups: ['dev'], account: 'tester' }],
  },
}

export async function runSignInStory(at: number): Promise<Story> {
  const { client, wire, isKept, isNext, isEach, agents: count = 1 } = plots[at]!
  const expired = `${client} on the ${wire} wire with an expired token`
  const name = isKept
    ? `Y19 ${client} is set up from the gateway by one command and gets its answer`
    : count > 1
      ? `Y28 ${count} agents at once, ${expired}: each asks triwire token again, one refresh follows, and all get their answers`
      : isEach
        ? `Y28 ${client} on the ${wire} wire runs triwire token before each request, so it never sends an expired token`
        : `Y28 ${expired} runs triwire token again${isNext ? ' for its next request' : ', once'}, and gets its answer`
  const agent = agents.find((one) => one.client === client)!
  const place = await openPlace(undefined, config)
  try {
    const { gateway, work, home, env } = place
    const session = await openTestSession(gateway)
    // The gateway's clock passes the end of the token, which lasts an hour.
    if (!isKept) gateway.advance(3_660_000)
    const reply = { reply: done }
    const twice = { turns: [{ tool_calls: [agent.tools.run('echo once')] }, reply] }
    gateway.simulator.script(scripted, isEach ? twice : reply)
    const bin = putCommand(place, session, { isKept, isEach })
    const own = { ...env, PATH: [bin, env['PATH']].join(delimiter), ...agent.env }
    const options = { cwd: work, env: own, limitMs }
    const program = programOf(agent.source)
    const model = modelOf(wire)
    const settings = isKept ? await logIn(program, place, options) : await setUp(client, wire, place, options)
    // The gateway's list names no model for opencode.
    const more = isKept ? ['-m', `triwire/${model}`] : []
    const ask = (_?: unknown, agentNumber = 0) =>
      run(program, [...agent.args('What is the answer?', model, wire), ...more], {
        ...options,
        env: { ...own, ...settings, [agentVariable]: `${agentNumber}` },
      })
    if (isNext) await ask()
    const all = await Promise.all(Array.from({ length: count }, ask))
    const lines = (await gateway.logLines()).filter(
      ({ method, path }) => method === 'POST' && `${path}`.startsWith('/v1/'),
    )
    const refused = lines.filter(({ status }) => status === 401).length
    const calls = readFileSync(join(home, 'calls'), 'utf8').trim().split('\n')
    const slowestMs = Math.max(0, ...readFileSync(join(home, 'took'), 'utf8').split('\n').map(Number))
    const [row] = await session.books.pageSessions({ limit: 1 })
    const verdicts: [boolean, string][] = [
      ...all.map(({ stdout, stderr }): [boolean, string] => [
        `${stdout}${stderr}`.includes(done),
        `it has no answer: ${stdout.slice(-400)} ${stderr.slice(-400)}`,
      ]),
      [lines.length > (isEach ? 1 : 0), `it sent ${lines.length} requests`],
      [refused === (isKept || isEach ? 0 : count), `${refused} of its requests were refused`],
      [isKept || row?.generation === 1, `it caused ${row?.generation} refreshes`],
      [
        isKept ? calls.length === 1 : isEach ? calls.length === lines.length : calls.length >= 2 * count,
        `it ran the command ${calls.length} times: ${calls.join('; ')}`,
      ],
      [count === 1 || slowestMs <= tokenMsMax, `a token came after ${slowestMs} ms`],
    ]
    return { name, failures: verdicts.flatMap(([isSo, otherwise]) => (isSo ? [] : [otherwise])) }
  } catch (error) {
    return { name, failures: [String(error)] }
  } finally {
    await place.close()
  }
}

type Options = Parameters<typeof run>[2]

async function setUp(client: string, wire: ClientWire, { gateway }: Place, options: Options) {
  const args = ['--json', 'setup', client, '--login', 'command', '--url', gateway.url, '--wire', wire]
  const write = client === 'copilot' ? [] : ['--write', '--yes']
  const said = await run(process.execPath, [cli, ...args, '--model', modelOf(wire), ...write], options)
  if (said.code !== 0) throw new Error(`setup failed: ${said.stderr}`)
  return (JSON.parse(said.stdout) as { env?: Record<string, string> }).env
}

async function logIn(program: string, { gateway }: Place, options: Options): Promise<undefined> {
  const said = await run(program, ['auth', 'login', gateway.url], options)
  if (said.code !== 0) throw new Error(`auth login failed: ${said.stdout} ${said.stderr}`)
}

/**
 * Installs a `triwire` command. Each agent's first call prints an expired token. Later calls run the real command, and
 * append the time that it took, in ms, to the file `took`.
 * @returns the command's folder
 */
function putCommand(
  { gateway, home, env }: Place,
  { access, refresh }: TestSession,
  { isKept, isEach }: Pick<Plot, 'isKept' | 'isEach'>,
): string {
  const bin = join(home, 'bin')
  const folder = join(env['XDG_STATE_HOME']!, 'triwire/sign-ins')
  for (const path of [bin, folder]) mkdirSync(path, { recursive: true })
  const [calls, command] = [join(home, 'calls'), join(bin, 'triwire')]
  const took = join(home, 'took')
  const met = `'${home}/met-'"$${agentVariable}"`
  const expired = isKept || isEach ? '' : `[ -e ${met} ] || { touch ${met}; echo ${access}; exit; }`
  const real = `began=$(date +%s%N)\n'${process.execPath}' '${cli}' "$@"\ncode=$?`
  const end = `echo $((($(date +%s%N) - began) / 1000000)) >> '${took}'\nexit $code`
  for (const path of [calls, took]) writeFileSync(path, '')
  writeFileSync(command, `#!/bin/sh\necho "$*" >> '${calls}'\n${expired}\n${real}\n${end}\n`)
  chmodSync(command, 0o700)
  const nowMs = Date.now()
  const times = { obtained_ms: nowMs - 3_600_000, expires_ms: isKept ? nowMs + 3_600_000 : nowMs - 1 }
  const tokens = { access_token: access, refresh_token: refresh, ...times }
  const kept = { url: gateway.url, token_endpoint: `${gateway.url}/oauth/token`, tokens }
  writeFileSync(fileOf(gateway.url, folder), JSON.stringify(kept), { mode: 0o600 })
  return bin
}
