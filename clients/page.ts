import { failureNames } from './agents/agent.ts'
import { type Cell, wires } from './cell.ts'
import { type Entry, entries } from './clients.ts'
import { versionOf } from './installs.ts'
import type { Results } from './results.ts'
import type { Story } from './stories.ts'

/** Writes docs/clients.md: the result and the cost of every client on every pair of wires. */
export function writePage({ cells: found, stories }: Results, isCut: boolean): string {
  const cells = entries.flatMap((entry) => found.filter((cell) => isOf(cell, entry)))
  const failed = cells.filter(({ failures }) => failures.length > 0)
  const omitted = cells.filter((cell) => cell.omitted.length > 0)
  return `<!-- Written by npm run test:clients from clients/results.json. -->
# Clients

This page shows which agents and SDKs work with the gateway. These programs are unpatched, come from npm, PyPI and Go's modules,
and use the settings that \`triwire setup\` prints for them. \`npm run test:clients\` runs all of them
${isCut ? 'in a network with only a loopback interface' : 'with telemetry off'}, and the simulator plays the model. Each cell of the
tables shows the last run with the client version that the row names.

**Agents** do one task of four turns. The agent writes two files in parallel, reads them with a command, reads a file with its
own tool, and answers. The tools really run. A cell passes under these conditions:

- the files exist, and the answer is shown;
- the model got four streamed requests on its own wire, with every tool result;
- all four requests had the same conversation key, if the agent sends one;
- the requests asked for reasoning, if the agent can ask for it.

The agents then repeat the task with a model that [fails once](#when-the-model-fails-once), for each kind of failure.

**SDKs** run these cases:

- a text, a stream, and parallel tool calls with their results;
- structured output through the SDK's own helper, and an image;
- reasoning that the SDK sends back in the next turn;
- an unknown model, for which the SDK must throw its typed error;
- an abort by the client, which must end the model's stream;
- the program that \`triwire setup\` prints.

The SDKs of Python and Go run two more cases: the model fails once, and the model cuts its stream.

In every cell, each answer is checked against the types of its wire. The usage that the client received must equal the usage in the ledger, to the token.

Each cell has two figures:

- **Cost** is the cost of the whole run in credits, from the ledger. A million tokens cost 3 credits for input, 0.30 read from cache, 3.75
  written to cache, and 15 for output.
- **Cached** is the share of the input that was read from cache. A model of the messages wire caches only content that the
  request marks. If client and model use the same wire, the client must mark the content. Otherwise the gateway marks it if the
  request has a conversation key, tools or an earlier answer (T5). So a client of the messages wire that marks nothing has
  0 % with a messages model. A run of one request has 0 % too.

One client does not show the figures that it received. LangChain JS (\`@langchain/anthropic\` 1.5) ignores the input in
\`message_delta\` on the messages wire. So its \`usage_metadata\` of a streamed answer has the input of \`message_start\` and no
cached tokens. If the model speaks another wire, that input is an estimate (T1). The figures in the stream itself are right, and
so are the figures that LangChain shows for JSON answers.

${table(cells)}

On chat and responses, Qwen Code does not ask unknown models for reasoning. On the messages wire, Copilot asks a model of
another wire for reasoning only in the first turn of a conversation. The thinking of such a model has no signature, so Copilot
cannot send it back.

## When the model fails once

In these runs the model first fails once, and then answers correctly. It fails with 429 and \`retry-after: 1\`, with 529 or with
500, or it cuts its stream in a text or after the arguments of a tool call. A cell names the model wires on which the agent
completed its task. "all" means all three wires. If no cell of a row names a wire, that wire was not tried.

No agent may run a tool call that was cut. But one agent runs such calls even without the gateway. Two other agents,
which are of one family, run them on chat, even if the gateway passes on the model's bytes unchanged.

${afterTable(cells)}

The following lines are results of further tests. Each line begins with the rule that the test checks: a
[ruling](rulings.md) such as Y19, or a section of the [interface](interface.md) such as spec 7.4:

${stories.map(tell).join('\n')}

${failed.length === 0 ? '' : `## What failed\n\n${failuresIntro}\n\n${failed.flatMap(reasons).join('\n')}\n\n`}${
  omitted.length === 0 ? '' : `## Cases that were left out\n\n${omissionsIntro}\n\n${omissions(cells).join('\n')}\n\n`
}## What does not run offline

- Claude Code's web search and web fetch, Codex's hosted web search, and Copilot's GitHub tools are services of the vendors.
  \`triwire setup\` switches off the hosted search of Codex if a model that Codex can choose uses another wire, because the
  gateway refuses it there (400, \`tools\`).
- The title that Claude Code requests from the small model needs a terminal, which the suite does not have.
${unproven(cells)}
## How to run it

\`npm run test:clients\` installs the pinned versions and runs everything, which takes more than an hour. Arguments after \`--\` limit it:

- \`agents\`, \`sdks\`, \`python\`, \`go\`, \`stories\` or the name of a client runs only that part;
- after the name, one or two wires may follow: the first selects the client's wire, the second the model's wire.

To try another version, change one line in \`clients/package.json\`, \`clients/python\` or \`clients/go/go.mod\`. Then install
and run. CONTRIBUTING.md describes how to run this in a CI. `
}

/** Whether a cell is a result of this client, in the version that is pinned now. Other results no longer count. */
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

const failuresIntro = `Each group names the client, its wire and the model's wire. Brackets name the
[failure of the model](#when-the-model-fails-once): "cut in a call" means that the model's stream ended after the
arguments of a tool call.`

const omissionsIntro = `Each line names the client, the case and the reason. Brackets name the client's wire and the model's wire, if the case was left out
only there. Some cases need a real model or the internet, and others need something that the SDK does not offer.`

/** A line for each client and reason. The wires are named if the reason is not the same on all. */
function omissions(cells: readonly Cell[]): string[] {
  const told = cells.flatMap((cell) => cell.omitted.map((text) => ({ cell, line: `${cell.client}: ${text}` })))
  return [...Map.groupBy(told, ({ line }) => line)].map(([line, found]) => {
    const all = cells.filter(({ client }) => client === found[0]!.cell.client)
    const pairs = found.map(({ cell }) => `${cell.clientWire} to ${cell.modelWire}`)
    return found.length === all.length ? `- ${line}` : `- ${line} (${pairs.join(', ')})`
  })
}

/** Makes a row for each client and wire. A row names the models' wires if the results differ between them. */
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
