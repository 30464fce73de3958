import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cell, wires } from './cell.ts'
import { entries } from './clients.ts'
import { install, programOf } from './installs.ts'
import { keepResults, nameOf } from './results.ts'
import type { Story } from './stories.ts'

// npm run test:clients [-- client or kind [client wire [model wire]]]
//
// Runs agents and SDKs against a gateway, each on every wire it speaks and with a model of every kind, and writes what
// came of it to docs/clients.md. Where the system lets us, it does so in a network of its own that has nothing but the
// loopback: what passes here passes offline.

const folder = import.meta.dirname
const [askedClient, askedClientWire, askedModelWire] = process.argv.slice(2)
const cutVariable = 'TRIWIRE_CLIENTS_OFFLINE'

// The AI SDK tells us on every call that it does not know our models.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

const asked = entries.filter(({ client, kind }) => [client, kind, undefined].includes(askedClient))
const wanted =
  askedClient === 'stories' ? entries.filter(({ source, kind }) => kind === 'agents' && source.from === 'npm') : asked
if (wanted.length === 0) throw new Error(`there is no client ${askedClient}`)
const isCut = process.env[cutVariable] === '1'
if (!isCut) {
  install(wanted.map(({ source }) => source))
  if (canCut()) process.exit(runCut())
}

// Before anything is run: what could not be started tells nothing about a client, and gets no row.
const stopped = wanted.flatMap(({ client, source, isProgram }) => {
  try {
    if (isProgram) programOf(source)
    return []
  } catch (error) {
    console.log(`FAILED ${client}: ${error}`)
    return [client]
  }
})
const cells = askedClient === 'stories' ? [] : await runAll()
// One at a time: they are about what comes when.
const told = [undefined, 'stories'].includes(askedClient) && stopped.length === 0 ? await runStories() : []
const all = [...cells, ...told]
const failed = all.filter(({ failures }) => failures.length > 0)
const missing = stopped.length === 0 ? '' : `, not started: ${stopped.join(', ')}`
console.log(`\n${all.length - failed.length} of ${all.length} passed${isCut ? ', without a network' : ''}${missing}`)
if (stopped.length === 0) {
  const { writePage } = await import('./page.ts')
  writeFileSync(join(folder, '../docs/clients.md'), writePage(keepResults(cells, told), isCut))
} else console.log('The page is left as it was.')
process.exit(failed.length > 0 || stopped.length > 0 ? 1 : 0)

/** The same in a network of its own. @returns how it ended */
function runCut(): number {
  const command = ['ip link set lo up', 'exec "$0" "$@"'].join(' && ')
  const own = [process.execPath, import.meta.filename, ...process.argv.slice(2)]
  const { status } = spawnSync('unshare', ['--user', '--map-root-user', '--net', 'sh', '-c', command, ...own], {
    stdio: 'inherit',
    env: { ...process.env, [cutVariable]: '1' },
  })
  return status ?? 1
}

/** Two at a time, or as many as TRIWIRE_CLIENTS_AT_ONCE says: each is a gateway, a simulator and a client. */
async function runAll(): Promise<Cell[]> {
  const runs = wanted
    .filter(({ client }) => !stopped.includes(client))
    .flatMap((entry) =>
      entry.wires.flatMap((clientWire) => wires.map((modelWire) => ({ ...entry, clientWire, modelWire }))),
    )
    .filter(({ clientWire }) => (askedClientWire ?? clientWire) === clientWire)
    .filter(({ modelWire }) => (askedModelWire ?? modelWire) === modelWire)
  const found = new Map<number, Cell>()
  const queue = [...runs.entries()]
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [index, { clientWire, modelWire, run }] = next
      const cell = await run(clientWire, modelWire)
      found.set(index, cell)
      console.log(describe(cell))
    }
  }
  await Promise.all(Array.from({ length: Number(process.env['TRIWIRE_CLIENTS_AT_ONCE'] ?? 2) }, () => work()))
  return runs.map((_, index) => found.get(index)!)
}

async function runStories(): Promise<Story[]> {
  const { runStory, storyCount } = await import('./stories.ts')
  const { runSignInStory, signInStoryCount } = await import('./sign-in.ts')
  const { runClaudeLogin } = await import('./claude-login.ts')
  const stories: Story[] = []
  const runs = [
    ...Array.from({ length: storyCount }, (_, at) => () => runStory(at)),
    ...Array.from({ length: signInStoryCount }, (_, at) => () => runSignInStory(at)),
    runClaudeLogin,
  ]
  for (const next of runs) {
    const story = await next()
    stories.push(story)
    console.log([`${markOf(story)} ${story.name}`, ...story.failures.map(indent)].join('\n'))
  }
  return stories
}

function describe(cell: Cell): string {
  const { failures, seconds, after = {} } = cell
  const head = `${markOf(cell)} ${nameOf(cell)}, ${seconds.toFixed(1)} s`
  const deadly = Object.entries(after).flatMap(([name, what]) => (what === 'recovers' ? [] : [name]))
  return [
    head,
    ...(deadly.length > 0 ? [indent(`gives up after ${deadly.join(', ')}`)] : []),
    ...failures.map(indent),
  ].join('\n')
}

function markOf({ failures }: { failures: readonly string[] }): string {
  return failures.length === 0 ? 'ok    ' : 'FAILED'
}

function indent(text: string): string {
  return `       ${text}`
}

/** Whether this system gives an ordinary user a network of their own. */
function canCut(): boolean {
  const probe = ['--user', '--map-root-user', '--net', 'sh', '-c', 'ip link set lo up']
  return process.platform === 'linux' && spawnSync('unshare', probe, { stdio: 'ignore' }).status === 0
}
