import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Cell, wires } from './cell.ts'
import type { Story } from './stories.ts'

const folder = import.meta.dirname
const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>
}

/** docs/clients.md: what every client came to on every pair of wires, and what it cost. */
export function writePage(cells: readonly Cell[], stories: readonly Story[], isCut: boolean): string {
  const failed = cells.filter(({ failures }) => failures.length > 0)
  const omitted = cells.filter((cell) => cell.omitted.length > 0)
  return `<!-- Written by npm run test:clients. -->
# Clients

The agents and SDKs that people use, unpatched, from the npm registry, with the settings that \`triwire setup\` prints for
them. \`npm run test:clients\` runs all of them ${isCut ? 'in a network that has nothing but the loopback' : 'with telemetry off'}; the simulator plays the model.

**Agents** do one task of four turns: two files are written in parallel, a command reads them back, a file is read, the
answer is given. The tools really run. A cell passes when the files are there, the answer is shown, and the model was asked
four times on its own wire, streamed, with every result, under one conversation key where the agent has one, and with
reasoning where the agent asks for it.

**SDKs** do text, stream, a round trip of parallel tools, structured output through their own helper, an image, reasoning
that is sent back, an unknown model as their typed error, and an abort that reaches the model; and the program that
\`triwire setup\` prints is run.

A cell has the cost of the whole run in credits, by the ledger, at 3 credits per million tokens in, 0.30 from cache, 3.75
into cache and 15 out; and how much of what went in was read from cache. A model of the messages wire caches what is marked: by the client itself, or
by the gateway where the conversation has a name and the wires differ. Hence the 0 % of clients that mark and name nothing.

${table(cells)}

Qwen Code asks no model for reasoning on chat and responses that it does not know; all others were told to, and do.
Copilot on messages asks translated models in its first turn only: their thinking has no signature, so it cannot send it back.

## When not all goes well

${stories.map(tell).join('\n')}

${failed.length === 0 ? '' : `## What failed\n\n${failed.flatMap(reasons).join('\n')}\n\n`}${
  omitted.length === 0 ? '' : `## What cannot be asked\n\n${omitted.flatMap(omissions).join('\n')}\n\n`
}## What does not run offline

- Claude Code's web search and web fetch, Codex's hosted web search, Copilot's GitHub tools: they are the vendors' own
  services. Codex's is switched off by the setup, since a translated model refuses it (400, \`tools\`).
- The title that Claude Code asks of the small model: only in a terminal, which the suite has not.
- Python SDKs: the suite installs from npm only. \`triwire setup\` prints settings for them which this page does not prove.

## Versions

${versions()}

Another version is one line in \`clients/package.json\`, \`npm install\` in that folder, and a run.
`
}

function tell({ name, failures }: Story): string {
  return `- ${name}: ${failures.length === 0 ? 'passed' : `**failed**, ${failures.join('; ')}`}`
}

function table(cells: readonly Cell[]): string {
  const rows = new Map<string, Cell[]>()
  for (const cell of cells) {
    const row = `${cell.client} ${dependencies[cell.package]} | ${cell.clientWire}`
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
  return `passed, ${(Number(cell.costNanos) / 1e9).toFixed(4)}, ${Math.round(cell.hitRate * 100)} % cached`
}

function reasons({ client, clientWire, modelWire, failures }: Cell): string[] {
  return [
    `- ${client}, ${clientWire} to ${modelWire}:`,
    ...failures.map((text) => `  - ${text.replaceAll('|', '\\|')}`),
  ]
}

function omissions({ client, clientWire, modelWire, omitted }: Cell): string[] {
  return omitted.map((text) => `- ${client}, ${clientWire} to ${modelWire}: ${text}`)
}

function versions(): string {
  return Object.entries(dependencies)
    .map(([name, version]) => `- ${name} ${version}`)
    .join('\n')
}
