import { spawnSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agents } from './agents.ts'
import { type Cell, wires } from './cell.ts'
import type { Story } from './stories.ts'

// npm run test:clients [-- client [client wire [model wire]]]
//
// Runs the agents and SDKs of package.json against a gateway, each on every wire it speaks and with a model of every
// kind, and writes what came of it to docs/clients.md. Where the system lets us, it does so in a network of its own that
// has nothing but the loopback: what passes here passes offline.

const folder = import.meta.dirname
const [askedClient, askedClientWire, askedModelWire] = process.argv.slice(2)
const cutVariable = 'TRIWIRE_CLIENTS_OFFLINE'

// The AI SDK tells us on every call that it does not know our models.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

install()
const isCut = process.env[cutVariable] === '1'
if (!isCut && canCut()) {
  const command = ['ip link set lo up', 'exec "$0" "$@"'].join(' && ')
  const own = [process.execPath, import.meta.filename, ...process.argv.slice(2)]
  const { status } = spawnSync('unshare', ['--user', '--map-root-user', '--net', 'sh', '-c', command, ...own], {
    stdio: 'inherit',
    env: { ...process.env, [cutVariable]: '1' },
  })
  process.exit(status ?? 1)
}
const cells = await runAll()
// One at a time: they are about what comes when.
const told = askedClient === undefined ? await runStories() : []
const all = [...cells, ...told]
const failed = all.filter(({ failures }) => failures.length > 0)
console.log(`\n${all.length - failed.length} of ${all.length} passed${isCut ? ', without a network' : ''}`)
if (askedClient === undefined) {
  const { writePage } = await import('./page.ts')
  writeFileSync(join(folder, '../docs/clients.md'), writePage(cells, told, isCut))
}
process.exit(failed.length > 0 ? 1 : 0)

/** Two at a time: each is a gateway, a simulator and a client. */
async function runAll(): Promise<Cell[]> {
  const { runAgent } = await import('./run-agent.ts')
  const { runSdk } = await import('./run-sdk.ts')
  const { sdks } = await import('./sdks/index.ts')
  const runs = [
    ...agents.map((agent) => ({ ...agent, run: runAgent.bind(undefined, agent) })),
    ...sdks.map((sdk) => ({ ...sdk, run: runSdk.bind(undefined, sdk) })),
  ].flatMap(({ client, wires: spoken, run }) =>
    spoken.flatMap((clientWire) => wires.map((modelWire) => ({ client, clientWire, modelWire, run }))),
  )
  const wanted = runs.filter(
    ({ client, clientWire, modelWire }) =>
      (askedClient ?? client) === client &&
      (askedClientWire ?? clientWire) === clientWire &&
      (askedModelWire ?? modelWire) === modelWire,
  )
  if (wanted.length === 0) throw new Error(`there is nothing like ${process.argv.slice(2).join(' ')}`)
  const found = new Map<number, Cell>()
  const queue = [...wanted.entries()]
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [index, { clientWire, modelWire, run }] = next
      const cell = await run(clientWire, modelWire)
      found.set(index, cell)
      console.log(describe(cell))
    }
  }
  await Promise.all([work(), work()])
  return wanted.map((_, index) => found.get(index)!)
}

async function runStories(): Promise<Story[]> {
  const { runStory, storyCount } = await import('./stories.ts')
  const stories: Story[] = []
  for (let at = 0; at < storyCount; at++) {
    const story = await runStory(at)
    stories.push(story)
    console.log([`${markOf(story)} ${story.name}`, ...story.failures.map(indent)].join('\n'))
  }
  return stories
}

function describe(cell: Cell): string {
  const { client, clientWire, modelWire, failures, seconds } = cell
  const head = `${markOf(cell)} ${client}, ${clientWire} to ${modelWire}, ${seconds.toFixed(1)} s`
  return [head, ...failures.map(indent)].join('\n')
}

function markOf({ failures }: { failures: readonly string[] }): string {
  return failures.length === 0 ? 'ok    ' : 'FAILED'
}

function indent(text: string): string {
  return `       ${text}`
}

/**
 * What the lockfile says is there, or is put there. Not with `npm ci`: it wants the binaries of every platform in the
 * lockfile, and whoever changes a version has a registry that may not hold them all.
 */
function install(): void {
  const stamp = statSync(join(folder, 'node_modules/.package-lock.json'), { throwIfNoEntry: false })
  const lock = statSync(join(folder, 'package-lock.json'))
  if (stamp && stamp.mtimeMs >= lock.mtimeMs) return
  const { status } = spawnSync('npm', ['install', '--no-save'], { cwd: folder, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

/** Whether this system gives an ordinary user a network of their own. */
function canCut(): boolean {
  const probe = ['--user', '--map-root-user', '--net', 'sh', '-c', 'ip link set lo up']
  return process.platform === 'linux' && spawnSync('unshare', probe, { stdio: 'ignore' }).status === 0
}
