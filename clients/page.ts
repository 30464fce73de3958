import { failureNames } from './agents/agent.ts'
import { type Cell, wires } from './cell.ts'
import { type Entry, entries } from './clients.ts'
import { versionOf } from './installs.ts'
import type { Results } from './results.ts'
import type { Story } from './stories.ts'

/** docs/clients.md: what every client came to on every pair of wires, and what it cost. */
export function writePage({ cells: found, stories }: Results, isCut: boolean): string {
  const cells = entries.flatMap((entry) => found.filter((cell) => isOf(cell, entry)))
  const failed = cells.filter(({ failures }) => failures.length > 0)
  const omitted = cells.filter((cell) => cell.omitted.length > 0)
  return `<!-- Written by npm run test:clients from clients/results.json. -->
# Clients

The agents and SDKs that people use, unpatched, from npm, PyPI and Go's modules, with the settings that \`triwire setup\`
prints for them. \`npm run test:clients\` runs all of them ${isCut ? 'in a network that has nothing but the loopback' : 'with telemetry off'}; the simulator plays the model.
A cell is what its last run came to, with the version that stands beside it.

**Agents** do one task of four turns: two files are written in parallel, a command reads them back, a file is read, the
answer is given. The tools really run. A cell passes when the files are there, the answer is shown, and the model was asked
four times on its own wire, streamed, with every result, under one conversation key where the agent has one, and with
reasoning where the agent asks for it. Then they do it again with a model that fails once in each way.

**SDKs** do text, stream, a round trip of parallel tools, structured output through their own helper, an image, reasoning
that is sent back, an unknown model as their typed error, and an abort that reaches the model; and the program that
\`triwire setup\` prints is run. Those of Python and Go also meet a model that fails once, and one that breaks off.

In every cell each answer is held against the types of its wire, and the usage that was told must be the ledger's to the
token. It has the cost of the whole run in credits, by the ledger, at 3 credits per million tokens in, 0.30 from cache, 3.75
into cache and 15 out; and how much of what went in was read from cache. A model of the messages wire caches what is marked: by the client itself, or
by the gateway where the wires differ and the request has a name, tools or an earlier answer (T5). Hence the 0 % of clients
that mark nothing on the messages wire itself, or ask once.

One client shows other figures than it was sent. LangChain JS (\`@langchain/anthropic\` 1.5) on the messages wire ignores the input
in \`message_delta\`. So its \`usage_metadata\` of a streamed answer has the input of \`message_start\`, which is an estimate where the
model speaks another wire (T1), and nothing from the cache. What it was sent is right, and so are its answers as JSON.

${table(cells)}

Qwen Code asks no model for reasoning on chat and responses that it does not know.
Copilot on messages asks translated models in its first turn only: their thinking has no signature, so it cannot send it back.

## When the model fails once

Before a good answer the model says 429 with \`retry-after: 1\`, 529, or 500, or it breaks its stream off in a text or behind
the arguments of a call. A row says with which models the agent then comes to its end; "all" stands for every kind, and a kind
that no cell of the row names was not tried. No agent may run
anything of the broken call. One does, also straight at the model; two that are of one family do on chat, also where the
model's own bytes reach them unchanged.

${afterTable(cells)}

${stories.map(tell).join('\n')}

${failed.length === 0 ? '' : `## What failed\n\n${failed.flatMap(reasons).join('\n')}\n\n`}${
  omitted.length === 0 ? '' : `## What cannot be asked\n\n${omissions(cells).join('\n')}\n\n`
}## What does not run offline

- Claude Code's web search and web fetch, Codex's hosted web search, Copilot's GitHub tools: they are the vendors' own
  services. Codex's is switched off by the setup, since a translated model refuses it (400, \`tools\`).
- The title that Claude Code asks of the small model: only in a terminal, which the suite has not.
${unproven(cells)}
## How to run it

\`npm run test:clients\` installs what is pinned and runs everything, which takes an hour and more; with \`agents\`, \`sdks\`,
\`python\`, \`go\`, \`stories\` or the name of a client behind \`--\` only that, and with one or two wires behind the name only the
client's and the model's. Another version is one line in \`clients/package.json\`, \`clients/python\` or \`clients/go/go.mod\`,
an install, and a run. CONTRIBUTING.md has the step for a CI.
`
}

/** What ran with another version than is pinned now tells nothing any more. */
function isOf(cell: Cell, { client, source }: Entry): boolean {
  return cell.client === client && cell.version === versionOf(source)
}

function tell({ name, failures }: Story): string {
  return `- ${name}: ${failures.length === 0 ? 'passed' : `**failed**, ${failures.join('; ')}`}`
}

function table(cells: readonly Cell[]): string {
  const rows = new Map<string, Cell[]>()
  for (const cell of cells) {
    const row = `${cell.client} ${cell.version} | ${cell.clientWire}`
    rows.set(row, [...(rows.get(row) ?? []), cell])
  }
  const head = ['Client', 'Client wire', ...wires.map((wire) => `${wire} model`)]
  const lines = [...rows].map(([row, found]) => {
    const shown = wires.map((wire) => found.find((cell) => cell.modelWire === wire)).map(show)
    return `| ${row} | ${shown.join(' | ')} |`
  })
  return [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...lines].join('\n')
}

function show(cell: Cell | undefined): string {
  if (!cell) return '–'
  if (cell.failures.length > 0) return '**failed**, see below'
  return `passed, ${cell.cost}, ${Math.round(cell.hitRate * 100)} % cached`
}

function reasons({ client, clientWire, modelWire, failures }: Cell): string[] {
  return [
    `- ${client}, ${clientWire} to ${modelWire}:`,
    ...failures.map((text) => `  - ${text.slice(0, 400).replaceAll('|', '\\|')}`),
  ]
}

/** A line for each client and reason; the wires are named where it is not so on all. */
function omissions(cells: readonly Cell[]): string[] {
  const told = cells.flatMap((cell) => cell.omitted.map((text) => ({ cell, line: `${cell.client}: ${text}` })))
  return [...Map.groupBy(told, ({ line }) => line)].map(([line, found]) => {
    const all = cells.filter(({ client }) => client === found[0]!.cell.client)
    const pairs = found.map(({ cell }) => `${cell.clientWire} to ${cell.modelWire}`)
    return found.length === all.length ? `- ${line}` : `- ${line} (${pairs.join(', ')})`
  })
}

/** A row for each client and wire; where models of different wires differ, the wires are named. */
function afterTable(cells: readonly Cell[]): string {
  const tried = cells.filter(({ after }) => after && Object.keys(after).length > 0)
  const rows = Map.groupBy(tried, ({ client, clientWire }) => `${client} | ${clientWire}`)
  const lines = [...rows].map(([row, found]) => {
    const shown = failureNames.map((name) => {
      if (found.every(({ after }) => after?.[name] === undefined)) return '–'
      const survived = found.filter(({ after }) => after?.[name] === 'recovers')
      if (survived.length === wires.length) return 'all'
      const told = survived.map(({ modelWire }) => modelWire).join(', ')
      const lost = new Set(found.flatMap(({ after }) => (after?.[name] === 'recovers' ? [] : [after?.[name]])))
      return survived.length === found.length ? told : `${told} **${[...lost].join(', ')}**`.trim()
    })
    return `| ${row} | ${shown.join(' | ')} |`
  })
  const head = ['Client', 'Client wire', ...failureNames]
  return [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...lines].join('\n')
}

function unproven(cells: readonly Cell[]): string {
  const missing = entries.filter(({ client }) => !cells.some((cell) => cell.client === client))
  return missing.map(({ client, source }) => `- ${client} ${versionOf(source)} was not run.\n`).join('')
}
