import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import type { RecordedRequest } from '../src/simulator/simulator.ts'
import type { Agent } from './agents/agent.ts'
import { npmAgents } from './agents/npm.ts'
import { pythonAgents } from './agents/python.ts'
import { chooseAgents } from './chosen-agents.ts'
import { programOf, versionOf } from './installs.ts'
import { figures, modelOf, openPlace, type Place, type Ran, run, scripted, setUp } from './place.ts'
import { readScreen } from './screen.ts'

// node bin/node.mjs clients/windows.ts [AGENT …]
//
// Prints which context window, output cap and model names each agent of `triwire setup` uses: from the agent's own
// report if it has one, and otherwise from its requests. docs/setup.md has the table. Only installed agents are tried.

type Seen = { window: string; output: string; names: string }
type Look = (tools: Tools) => Promise<Seen>
type Tools = {
  place: Place
  agent: Agent
  /** Runs the agent with these arguments. */
  start(args: readonly string[]): Promise<Ran>
  /** Runs it in a terminal, presses these keys one after the other, and waits for this text on its screen. */
  screen(keys: readonly string[], text: RegExp): Promise<string>
  /** Returns the model ids of all requests since the last call, and the output cap of the first of these requests. */
  asked(): Promise<{ models: string; output: string }>
  /** Reads the files below the home folder that match a pattern. */
  read(pattern: string): string
}

const agent = { description: 'x', prompt: 'Say hello.', subagent_type: 'general-purpose' }

/** Returns the first group of a pattern, such as a number after a word. */
function behind(text: string, pattern: RegExp): string {
  return pattern.exec(text)?.[1] ?? 'not reported'
}

const looks: Readonly<Record<string, { wire: ClientWire; look: Look }>> = {
  'claude-code': {
    wire: 'messages',
    async look({ start, asked, place }) {
      const context = await start(['-p', '/context'])
      await asked()
      const names: string[] = []
      for (const name of ['opus', 'sonnet', 'haiku', 'fable']) {
        await start(['-p', 'hello', '--model', name])
        names.push(`${name} → ${(await asked()).models}`)
      }
      const script = (model: string) => ({
        turns: [{ tool_calls: [{ name: 'Agent', arguments: { ...agent, model } }] }, { reply: 'Done.' }],
      })
      for (const model of ['sonnet', 'haiku']) {
        place.gateway.simulator.script(scripted, script(model))
        await start(['-p', 'hello', '--allowedTools', 'Agent'])
        names.push(`a subagent of ${model} → ${(await asked()).models}`)
      }
      place.gateway.simulator.script(scripted, { reply: 'hello' })
      await start(['-p', 'hello'])
      const first = await asked()
      return {
        window: behind(context.stdout, /\/\s*([\d.,]+[km]?)\b/i),
        output: first.output,
        names: names.join('; '),
      }
    },
  },
  codex: {
    wire: 'responses',
    async look({ start, read, asked }) {
      const ran = await start(['exec', '--skip-git-repo-check', 'hello'])
      const warns = /metadata for .* not found/i.test(ran.stderr + ran.stdout)
      const window = behind(read('.codex/sessions/**/*.jsonl'), /"model_context_window":(\d+)/)
      return {
        window: `${window} (95 % of it)`,
        output: 'sends none',
        names: `${(await asked()).models}; ${warns ? 'warns of missing metadata' : 'no warning'}`,
      }
    },
  },
  opencode: { wire: 'chat', look: lookAtOpencode },
  kilo: { wire: 'chat', look: lookAtOpencode },
  pi: {
    wire: 'chat',
    async look({ start }) {
      const { stdout, stderr } = await start(['--list-models', 'triwire'])
      const row = (stdout + stderr).split('\n').find((line) => line.startsWith('triwire')) ?? ''
      const [, model = 'not listed', window = '', output = ''] = row.trim().split(/\s+/)
      return { window, output, names: model }
    },
  },
  'qwen-code': {
    wire: 'chat',
    async look({ start, asked }) {
      const { stdout } = await start(['-p', '/context'])
      await start(['--yolo', 'say hello'])
      const first = await asked()
      return { window: behind(stdout, /Context window: ([\d.,]+[km]?)/i), output: first.output, names: first.models }
    },
  },
  copilot: {
    wire: 'chat',
    async look({ start, asked, read }) {
      await start(['-p', 'hello', '--allow-all'])
      const log = read('.copilot/session-state/*/events.jsonl')
      const first = await asked()
      const window = `${behind(log, /"maxPromptTokens":(\d+)/)} for the prompt`
      return { window, output: behind(log, /"maxOutputTokens":(\d+)/), names: first.models }
    },
  },
  droid: {
    wire: 'chat',
    async look({ agent, place, start, asked, read }) {
      // Droid compares the context with its limit after the tool calls of a turn.
      const turns = [{ tool_calls: [agent.tools.run('pwd')] }, { reply: 'Done.' }]
      place.gateway.simulator.script(scripted, { turns })
      await start(['exec', '-m', 'custom:triwire-0', 'hello'])
      const first = await asked()
      const log = read('.factory/logs/*.log')
      return {
        window: `shortens at ${behind(log, /Compaction threshold check[^\n]*"limit":(\d+)/)}`,
        output: first.output,
        names: first.models,
      }
    },
  },
  'kimi-code': {
    wire: 'chat',
    async look({ start, asked, screen }) {
      await start(['-p', 'hello'])
      const first = await asked()
      const { stdout } = await start(['provider', 'list', '--json'])
      // Enter confirms that the folder is trusted.
      const status = await screen(['\r'], /context: \d+% \(\d+\/[\d.]+[kM]\)/)
      return {
        window: `${behind(stdout, /"maxContextSize": (\d+)/)}; its screen: ${behind(status, /\/([\d.]+[kM])/)} of 1,024`,
        output: first.output,
        names: first.models,
      }
    },
  },
  cn: {
    wire: 'chat',
    async look({ start, asked, read }) {
      await start(['--auto', '--verbose', '-p', 'hello'])
      const first = await asked()
      return {
        window: behind(read('.continue/logs/cn.log'), /"contextLimit":(\d+)/),
        output: first.output,
        names: first.models,
      }
    },
  },
  cline: {
    wire: 'chat',
    async look({ start, asked }) {
      const { stdout } = await start(['--json', 'say hello'])
      const first = await asked()
      return {
        window: behind(stdout, /"contextWindow":(\d+)/),
        output: first.output,
        names: first.models,
      }
    },
  },
  aider: {
    wire: 'chat',
    async look({ start }) {
      const quiet = ['--yes-always', '--no-git', '--no-check-update', '--no-show-release-notes', '--analytics-disable']
      const { stdout } = await start([...quiet, '-m', '/tokens'])
      return {
        window: behind(stdout, /([\d,]+) tokens max context window size/),
        output: 'sends none',
        names: behind(stdout, /Model: (\S+)/),
      }
    },
  },
  gptme: {
    wire: 'responses',
    async look({ start, asked }) {
      await start(['--non-interactive', '-m', `openai/${modelOf('responses')}`, 'hello'])
      const first = await asked()
      return { window: 'takes none', output: first.output, names: first.models }
    },
  },
  'mini-swe-agent': {
    wire: 'chat',
    async look({ start, asked }) {
      await start([
        '-c',
        'mini.yaml',
        '-y',
        '--exit-immediately',
        '-t',
        'hello',
        '-o',
        'trajectory.json',
        '-c',
        'agent.step_limit=1',
      ])
      const first = await asked()
      return { window: 'takes none', output: first.output, names: first.models }
    },
  },
}

async function lookAtOpencode({ start, asked }: Tools): Promise<Seen> {
  const { stdout } = await start(['models', 'triwire', '--verbose'])
  const entry = stdout.slice(stdout.indexOf(`triwire/${modelOf('chat')}\n`))
  await start(['run', '--auto', 'hello'])
  const { models } = await asked()
  return {
    window: behind(entry, /"limit":\s*\{[^}]*"context":\s*(\d+)/),
    output: behind(entry, /"limit":\s*\{[^}]*"output":\s*(\d+)/),
    names: models,
  }
}

const shown = [...npmAgents, ...pythonAgents].filter(({ client }) => looks[client])
const rows: string[] = []
for (const agent of chooseAgents(shown, 'windows.ts', Object.keys(looks))) {
  const entry = looks[agent.client]!
  try {
    programOf(agent.source)
  } catch {
    console.error(`${agent.client} is not installed here`)
    continue
  }
  const seen = await look(agent, entry.wire, entry.look)
  rows.push(`| ${agent.client} ${versionOf(agent.source)} | ${seen.window} | ${seen.output} | ${seen.names} |`)
  console.error(rows.at(-1))
}
console.log(
  `| Agent | Window (setup: ${figures.contextWindow}) | Output cap (setup: ${figures.outputTokensMax}) | Names |\n|---|---|---|---|\n${rows.join('\n')}`,
)

async function look(agent: Agent, wire: ClientWire, by: Look): Promise<Seen> {
  const place = await openPlace()
  try {
    const settings = await setUp(place, agent.client, wire, modelOf(wire))
    const env = { ...place.env, ...agent.env, ...settings.env }
    const program = programOf(agent.source)
    let [from, lines] = [0, 0]
    return await by({
      place,
      agent,
      start: (args) => run(program, withConfig(agent, args, place), { cwd: place.work, env, limitMs: 120_000 }),
      screen: (keys, text) => readScreen(program, { cwd: place.work, env, keys, text }),
      async asked() {
        const [first] = place.gateway.simulator.requests.slice(from)
        from = place.gateway.simulator.requests.length
        const log = (await place.gateway.logLines()).filter((line) => line['model'] !== undefined)
        const models = [
          ...new Set(
            log.slice(lines).map((line) => `${line['model']}${line['status'] === 200 ? '' : ` (${line['status']})`}`),
          ),
        ]
        lines = log.length
        return { models: models.join(', '), output: first ? outputOf(first) : 'no request' }
      },
      read: (pattern) =>
        globSync(pattern, { cwd: place.home })
          .map((path) => readText(join(place.home, path)))
          .join('\n'),
    })
  } finally {
    await place.close()
  }
}

function withConfig(agent: Agent, args: readonly string[], place: Place): string[] {
  return agent.client === 'cn' ? ['--config', join(place.home, '.continue/triwire.yaml'), ...args] : [...args]
}

function outputOf({ json }: RecordedRequest): string {
  const body = json as Record<string, unknown>
  return String(body['max_tokens'] ?? body['max_completion_tokens'] ?? body['max_output_tokens'] ?? 'sends none')
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
