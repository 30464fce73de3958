import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import type { Script } from '../src/simulator/script.ts'
import { startTestGateway, type TestGateway, testModel } from '../test/support/gateway.ts'
import { wires } from './cell.ts'

const root = dirname(import.meta.dirname)

/** A gateway with a model of each kind, and an empty home and working folder for a client. */
export type Place = {
  gateway: TestGateway
  home: string
  work: string
  /** The environment of a client's process, without the variables of the suite's process. */
  env: Record<string, string>
  close(): Promise<void>
}

/** The catalog id of the model that a client talks to. */
export function modelOf(wire: ClientWire): string {
  return `large-${wire}`
}

/** The limits of that model. No agent has them as defaults, so an agent that uses them has read its settings. */
export const figures = { contextWindow: 400_000, outputTokensMax: 31_000 }

/** The id of the model for titles and other small work. It has no script, so that scripts are for the task alone. */
export const smallModel = 'small'

/** The scripts of models that fail or are slow. The catalog has each on every wire, as `<kind>-<wire>`. */
export const kinds = {
  busy: { first: [{ status: 429, retry_after: 1 }], reply: 'That is the answer.' },
  overloaded: { first: [{ status: 529 }], reply: 'That is the answer.' },
  broken: { first: [{ status: 500 }], reply: 'That is the answer.' },
  'cut-text': { reply: 'It begins and does not come to its end.', cut: { after_events: 5, how: 'reset' } },
  'cut-call': {
    tool_calls: [{ name: 'get_weather', arguments: { city: 'Paris' } }],
    cut: { after_events: -3, how: 'reset' },
  },
  slow: { tokens: 400, delay_ms: 10 },
} as const

/** The name at the upstream of the model that a test gives its script to. */
export const scripted = 'task'

/**
 * Starts a gateway with its simulator, and makes the folders.
 * @param autoCache replaces the `auto_cache` of the messages model's profile
 * @param more further keys of the gateway's configuration
 */
export async function openPlace(autoCache?: 'on_key', more: Record<string, unknown> = {}): Promise<Place> {
  const models = [
    ...wires.map((wire) =>
      testModel(modelOf(wire), wire, {
        upstream_model: scripted,
        max_output_tokens: figures.outputTokensMax,
        context_window: figures.contextWindow,
        profile: autoCache && wire === 'messages' ? { extends: 'simulator', auto_cache: autoCache } : 'simulator',
      }),
    ),
    ...Object.keys(kinds).flatMap((kind) =>
      wires.map((wire) => testModel(`${kind}-${wire}`, wire, { upstream_model: kind, profile: 'simulator' })),
    ),
    testModel(smallModel, 'chat', { upstream_model: 'sim' }),
    ...wires.map((wire) => testModel(`${smallModel}-${wire}`, wire, { upstream_model: 'sim', profile: 'simulator' })),
  ]
  const folder = mkdtempSync(join(tmpdir(), 'triwire-client-'))
  const gateway = await startTestGateway({
    models,
    keepsAnswers: true,
    // The gateway must end a model's stream as soon as the client aborts, and not read on for its usage (C12).
    config: { limits: { requests_per_minute: 10_000 }, billing: { read_on: 0 }, ...more },
  })
  for (const [kind, script] of Object.entries(kinds)) gateway.simulator.script(kind, script as Script)
  const [home, work] = [join(folder, 'home'), join(folder, 'work')]
  for (const path of [home, work]) mkdirSync(path)
  const env = {
    PATH: [dirname(process.execPath), join(import.meta.dirname, 'node_modules/.bin'), '/usr/bin', '/bin'].join(':'),
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_DATA_HOME: join(home, '.local/share'),
    XDG_STATE_HOME: join(home, '.local/state'),
    XDG_CACHE_HOME: join(home, '.cache'),
    TMPDIR: folder,
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    NO_COLOR: '1',
  }
  const close = async () => {
    await gateway.close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  return { gateway, home, work, env, close }
}

export type Settings = { env?: Record<string, string>; file?: { path: string }; run?: string; code?: string }

/** Returns the settings that `triwire setup` prints, and lets it write their file if they have one. */
export async function setUp(place: Place, client: string, wire: ClientWire, model: string): Promise<Settings> {
  const { gateway, env } = place
  const cli = join(root, 'src/cli/cli.ts')
  const base = [cli, '--config', gateway.configPath, '--json', 'setup', client, '--wire', wire]
  const more = ['--url', gateway.url, '--key', gateway.key, '--model', model, '--small-model', smallModel]
  const said = await run(process.execPath, [...base, ...more], { cwd: place.work, env, limitMs: 30_000 })
  if (said.code !== 0) throw new Error(`triwire setup ${client} failed: ${said.stderr}`)
  const settings = JSON.parse(said.stdout) as Settings
  if (settings.file) {
    const written = await run(process.execPath, [...base, ...more, '--write'], {
      cwd: place.work,
      env,
      limitMs: 30_000,
    })
    if (written.code !== 0) throw new Error(`triwire setup ${client} --write failed: ${written.stderr}`)
  }
  return settings
}

export type Ran = { code: number | null; stdout: string; stderr: string; isLate: boolean }

/** Runs a program until it ends or the time is up. Then every process that it started is killed. */
export function run(
  command: string,
  args: readonly string[],
  { cwd, env, limitMs }: { cwd: string; env: Record<string, string>; limitMs: number },
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    // In a process group of its own, so that the processes that it leaves running can be killed.
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    let [stdout, stderr, isLate] = ['', '', false]
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    const timer = setTimeout(() => {
      isLate = true
      endGroup(child)
    }, limitMs)
    child.on('error', reject)
    child.on('exit', () => endGroup(child))
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve({ code, stdout, stderr, isLate })
    })
  })
}

/** Kills all processes of a child's process group. */
export function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All processes of the group have ended.
  }
}
