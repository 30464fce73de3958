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

This page shows which agents and SDKs work with the gateway. They are unpatched, come from npm, PyPI and Go's modules, and use the settings that
\`triwire setup\` prints for them. \`npm run test:clients\` runs all of them ${isCut ? 'in a network with only a loopback interface' : 'with telemetry off'}; the simulator plays the model.
A cell is the result of the last run of the version beside it.

**Agents** do one task of four turns. They write two files in parallel, read them back with a command, read a file, and give the answer.
The tools really run. A cell passes under these conditions:

- the files exist, and the answer is shown;
- the model got four streamed requests on its own wire, with every tool result;
- all four had the same conversation key, if the agent has one;
- they asked for reasoning, if the agent does so.

The agents then repeat the task with a model that fails once in each way.

**SDKs** run these cases:

- text, a stream, and a round trip of parallel tools;
- structured output through the SDK's own helper, and an image;
- reasoning that is sent back;
- an unknown model, which must become the SDK's typed error;
- an abort, which must reach the model;
- the program that \`triwire setup\` prints.

The SDKs of Python and Go also meet a model that fails once, and one that cuts its stream.

In every cell, each answer is checked against the types of its wire. The usage that the client received must equal the usage in the ledger, to the token.

Each cell has two figures:

- **Cost** is the cost of the whole run in credits, from the ledger. A million tokens cost 3 credits for input, 0.30 read from cache, 3.75
  written to cache, and 15 for output.
- **Cached** is the share of the input that was read from cache. A model of the messages wire caches only marked content. The client
  marks it. If the wires differ and the request has a name, tools or an earlier answer, the gateway marks it (T5). So clients of the
  messages wire have 0 % if they mark nothing on that wire, or send only one request.

One client shows other figures than it received. LangChain JS (\`@langchain/anthropic\` 1.5) ignores the input in \`message_delta\` on the
messages wire. So its \`usage_metadata\` of a streamed answer has the input of \`message_start\` and no cached tokens. If the
model speaks another wire, that input is an estimate (T1). The figures that it received are right, and so are those of its JSON answers.

${table(cells)}

On chat and responses, Qwen Code does not ask unknown models for reasoning. On messages, Copilot asks translated models for reasoning in
its first turn only. Their thinking has no signature, so Copilot cannot send it back.

## When the model fails once

Before a good answer, the model fails once. It returns 429 with \`retry-after: 1\`, 529 or 500, or it cuts its stream in a text or after
the arguments of a call. The table names the wires of the models with which the agent then completes its task. "all" means the models of every wire. A
wire that no cell of a row names was not tried.

No agent may run any part of the cut call. One agent does so, even when it is connected to the model directly. Two agents of one family do so on chat, even
if they receive the model's own bytes unchanged.

${afterTable(cells)}

${stories.map(tell).join('\n')}

${failed.length === 0 ? '' : `## What failed\n\n${failed.flatMap(reasons).join('\n')}\n\n`}${
  omitted.length === 0 ? '' : `## What cannot be asked\n\n${omissions(cells).join('\n')}\n\n`
}## What does not run offline

- Claude Code's web search and web fetch, Codex's hosted web search, and Copilot's GitHub tools are services of the vendors. The setup
  switches Codex's off, since a translated model refuses it (400, \`tools\`).
- The title that Claude Code requests from the small model needs a terminal, which the suite does not have.
${unproven(cells)}
## How to run it

\`npm run test:clients\` installs the pinned versions and runs everything, which takes more than an hour. Arguments after \`--\` limit it:

- \`agents\`, \`sdks\`, \`python\`, \`go\`, \`stories\` or the name of a client runs only that;
- one or two wires after the name limit the client's wire and the model's wire.

To try another version, change one line in \`clients/package.json\`, \`clients/python\` or \`clients/go/go.mod\`. Then install and run.
CONTRIBUTING.md describes the step for a CI.
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
