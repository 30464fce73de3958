import type { ClientWire } from '../src/catalog/wire-names.ts'
import { wires } from './gateway.ts'
import { knownFaults } from './known.ts'
import type { Cell, Results, Verdict } from './results.ts'

const signs: Record<Verdict, string> = { pass: 'yes', none: '–', own: 'own', ours: '**no**' }

/** Features by pairs, every cell filled. */
export function tableOf({ cells }: Results): string {
  const names = [...new Set(cells.map(({ feature }) => feature))]
  const columns = wires.flatMap((modelWire) =>
    (['direct', ...wires] as const).map((clientWire) => ({ clientWire, modelWire })),
  )
  const head = columns.map(({ clientWire, modelWire }) =>
    clientWire === 'direct' ? `*${modelWire}, asked directly*` : `${clientWire}→${modelWire}`,
  )
  const row = (name: string) =>
    columns.map(({ clientWire, modelWire }) =>
      signOf(
        cells.find((cell) => cell.feature === name && cell.clientWire === clientWire && cell.modelWire === modelWire),
      ),
    )
  return [
    `| | ${head.join(' | ')} |`,
    `|---|${columns.map(() => '---|').join('')}`,
    ...names.map((name) => `| ${name} | ${row(name).join(' | ')} |`),
  ].join('\n')
}

/** Of a server that is asked directly nothing is ours; an SDK may read its JSON and not its stream. */
function signOf(cell: Cell | undefined): string {
  if (cell === undefined) return '–'
  if (cell.clientWire !== 'direct' || cell.verdict === 'pass' || cell.verdict === 'none') return signs[cell.verdict]
  return cell.words.length === 1 && cell.words[0]!.startsWith('stream: ') ? 'JSON' : 'no'
}

/** docs/servers.md, in which a server that was not tried keeps what stands of it. */
export function writePage(old: string, tried: readonly Results[]): string {
  const parts = new Map(old.split(/^(?=## )/m).map((part) => [/^## (\S+) \d/.exec(part)?.[1], part]))
  for (const results of tried) parts.set(results.server, partOf(results))
  const servers = Object.keys(knownFaults).map((name) => parts.get(name) ?? '')
  return `<!-- Written by npm run test:servers. -->
# Model servers

How servers that people run themselves behave behind the gateway, and how to declare them. llama.cpp and LiteLLM's proxy are tried
by \`npm run test:servers\`; what stands here of the others was measured with the versions named.

## How to declare one

- \`wire: chat\`, whatever else the server speaks: its messages and responses wires are poorer than our translation to its
  chat wire. In the tables nearly every \`own\` stands in the columns of the other two.
- \`profile: vllm\`, \`llama-cpp\`, \`litellm\` or \`ollama\` ([the table](configuration.md)); \`{ extends: vllm, images: false }\` for a model of
  text, so that an image is refused before it is sent.
- \`max_output_tokens\` below what the server gives one request (\`--max-model-len\` of vLLM, \`-c\` ÷ \`-np\` of llama.cpp): vLLM
  refuses a larger cap, and the prompt needs room too.
- vLLM refuses every request with tools unless it was started with \`--enable-auto-tool-choice --tool-call-parser <parser>\`, and
  tells cached tokens only with \`--enable-prompt-tokens-details\`. See \`examples/vllm.yaml\`.
- LiteLLM in front of a server: \`{ extends: litellm, … }\` with what that server lacks, as llama.cpp does a named choice
  (\`tool_choice: [auto, none, required]\`). With \`hosted_vllm/…\` LiteLLM hands a wish for reasoning on; with \`openai/…\` it
  refuses one on messages and responses, with 400, until the \`model_info\` of its model has \`supports_reasoning: true\`.
- Reasoning that a client switches off is switched off at the server with these profiles; without a profile the server is told
  nothing, reasons all the same, and the client pays for what it does not see.

## How to read the tables

The official SDKs ask, streamed and not, through a gateway that is a process of its own; \`client→model\` names the client's wire
and the one the model is declared with. \`yes\`: both forms do what they should. \`own\`: the server does it wrong itself, see below
the table. \`–\`: the wire has no such thing. In the columns of the server alone \`no\` and \`JSON\` (its stream cannot be read by the
SDK) are what the same SDK gets without a gateway; where a column of ours says \`yes\` beside them, the gateway makes good for it.

${servers.join('')}## What was measured of others

| Server | What it does |
|---|---|
| vLLM 0.32.0 | takes at most 4 stop sequences on chat and messages (400 above; the profile's \`max_stops\`); holds arguments to a tool's schema only where \`strict\` is true; takes \`reasoning_effort: none\` on chat, \`thinking: disabled\` on messages, \`reasoning.effort\` on responses; names the model in its refusals |
| Ollama 0.17.4 | gives a number twice on messages (thinking, then a call) and on responses; ignores \`max_completion_tokens\` and every tool choice on chat; tells a cut answer as whole on responses; cuts prompts that are too long without a word |

None of them refuses fields that it does not know.

## How to run it

\`npm run test:servers\` takes llama.cpp's packages from the mirror that the machine's own apt uses, or from \`--mirror URL\`,
checks them as apt does, and unpacks them into \`.servers\` (\`TRIWIRE_SERVERS_DIR\`); LiteLLM comes from PyPI, each package as
\`servers/litellm.txt\` pins it, into a Python environment there (770 MB). Nothing is installed on the system. It needs Linux on x64,
for LiteLLM Python too (3.11 was tried), takes twelve minutes, and writes this page; with a name behind it
(\`npm run test:servers -- llama.cpp\`, three minutes) it tries that server only. Where a download fails it says \`SKIPPED\`, leaves that
server's part of the page as it is, and ends with 0. In a CI it is a step of its own, \`.ci/servers\`: Debian's unstable release
moves, and no change of ours has to wait for it. A cell that is \`no\` is ours until somebody finds it to be the server's and adds it to
\`servers/known.ts\`.
`
}

function partOf(results: Results): string {
  const { server, version, about, billed, differing } = results
  const agreeing = differing.length === 0 ? 'all of them' : `all but ${differing.length}`
  return `## ${server} ${version}

${about}

${tableOf(results)}

${billed} answers came to their end, and the ledger has what their clients were told for ${agreeing}, to the token.

${ownFaults(results)}

`
}

function ownFaults({ server, version, cells }: Results): string {
  const rows = (knownFaults[server] ?? []).flatMap(({ modelWires, features, isNativeOnly, isMended, words }) => {
    const seen = isMended ? features : features.filter((feature) => isOwn(cells, feature, modelWires))
    const met = isMended ? 'for nobody: we make good for it' : isNativeOnly ? 'on the same wire' : 'for all clients'
    return seen.length === 0 ? [] : [`| ${modelWires.join(', ')} | ${seen.join('; ')} | ${words} | ${met} |`]
  })
  return [
    `What ${server} ${version} does wrong itself:`,
    '',
    '| Its wire | Feature | It | Seen |',
    '|---|---|---|---|',
    ...rows,
  ].join('\n')
}

function isOwn(cells: readonly Cell[], feature: string, modelWires: readonly ClientWire[]): boolean {
  return cells.some((cell) => cell.feature === feature && modelWires.includes(cell.modelWire) && cell.verdict === 'own')
}
