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
// Runs agents and SDKs against a gateway, each on all of its wires and with models of all wires, and writes the results
// to docs/clients.md. If the system allows it, they run in a network namespace with only the loopback interface, which
// shows that they work offline.

const folder = import.meta.dirname
const [askedClient, askedClientWire, askedModelWire] = process.argv.slice(2)
const cutVariable = 'TRIWIRE_CLIENTS_OFFLINE'

// Without this, the AI SDK warns on every call that it does not know our models.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

const asked = entries.filter(({ client, kind }) => [client, kind, undefined].includes(askedClient))
const wanted =
  askedClient === 'stories' ? entries.filter(({ source, kind }) => kind === 'agents' && source.from === 'npm') : asked
const isWire = (name: string | undefined) => name === undefined || wires.some((wire) => wire === name)
if (wanted.length === 0 || !isWire(askedClientWire) || !isWire(askedModelWire)) {
  console.error(`npm run test:clients [-- CLIENT or KIND [CLIENT_WIRE [MODEL_WIRE]]]

  Kinds:    ${[...new Set(entries.map(({ kind }) => kind)), 'stories'].join(', ')}
  Clients:  ${entries.map(({ client }) => client).join(', ')}
  Wires:    ${wires.join(', ')}`)
  process.exit(2)
}
const isCut = process.env[cutVariable] === '1'
if (!isCut) {
  install(wanted.map(({ source }) => source))
  if (canCut()) process.exit(runCut())
}

// Programs that cannot start are found before anything runs. With such a program, no results are written.
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
// Stories run one at a time, because they check the order of events.
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

/** Runs this script again in a network namespace of its own. @returns its exit code */
function runCut(): number {
  const command = ['ip link set lo up', 'exec "$0" "$@"'].join(' && ')
  const own = [process.execPath, import.meta.filename, ...process.argv.slice(2)]
  const { status } = spawnSync('unshare', ['--user', '--map-root-user', '--net', 'sh', '-c', command, ...own], {
    stdio: 'inherit',
    env: { ...process.env, [cutVariable]: '1' },
  })
  return status ?? 1
}

/** Runs two cells at a time, or TRIWIRE_CLIENTS_AT_ONCE of them. Each has a gateway, a simulator and a client. */
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

/** Whether an ordinary user of this system can create a network namespace. */
function canCut(): boolean {
  const probe = ['--user', '--map-root-user', '--net', 'sh', '-c', 'ip link set lo up']
  return process.platform === 'linux' && spawnSync('unshare', probe, { stdio: 'ignore' }).status === 0
}
