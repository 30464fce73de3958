import type { ClientWire } from '../src/catalog/wire-names.ts'
import { wires } from './gateway.ts'
import { knownFaults } from './known.ts'
import type { Cell, Results, Verdict } from './results.ts'

const signs: Record<Verdict, string> = { pass: 'yes', none: '–', own: 'own', ours: '**no**' }

/** Makes the table of features by pairs of wires. */
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

/** Returns the text of a cell. If a server is asked directly, a failure is `no`, or `JSON` if only the stream fails. */
function signOf(cell: Cell | undefined): string {
  if (cell === undefined) return '–'
  if (cell.clientWire !== 'direct' || cell.verdict === 'pass' || cell.verdict === 'none') return signs[cell.verdict]
  return cell.words.length === 1 && cell.words[0]!.startsWith('stream: ') ? 'JSON' : 'no'
}

/** Writes docs/servers.md. The part of a server that was not tried stays unchanged. */
export function writePage(old: string, tried: readonly Results[]): string {
  const parts = new Map(old.split(/^(?=## )/m).map((part) => [/^## (\S+) \d/.exec(part)?.[1], part]))
  for (const results of tried) parts.set(results.server, partOf(results))
  const servers = Object.keys(knownFaults).map((name) => parts.get(name) ?? '')
  return `<!-- Written by npm run test:servers. -->
# Model servers

This page shows how self-hosted model servers behave as upstreams of the gateway, and how to declare them in the configuration.
\`npm run test:servers\` tries llama.cpp and LiteLLM's proxy. The facts about other servers were measured with the named versions.

## How to declare a model server

- **Wire** (API format): set \`wire: chat\`, even if the server also offers other wires. The \`messages\` and \`responses\` wires
  of a server have more faults than the gateway's translation to its \`chat\` wire. The tables mark a fault of a server as
  \`own\`. Nearly all such faults are in the columns of messages and responses.
- **Profile**: set \`profile\` to \`vllm\`, \`llama-cpp\`, \`litellm\` or \`ollama\` ([the table](configuration.md)). For a text-only model, use
  \`{ extends: vllm, images: false }\`. An image is then refused before it is sent.
- **Output cap**: set \`max_output_tokens\` below the context that the server gives one request (\`--max-model-len\` of vLLM,
  \`-c\` ÷ \`-np\` of llama.cpp). vLLM refuses a larger cap. The prompt must fit into the same context, so leave room for the prompt.
- **vLLM**: start it with \`--enable-auto-tool-choice --tool-call-parser <parser>\`, or it refuses every request with tools.
  vLLM reports cached tokens only with \`--enable-prompt-tokens-details\`. See \`examples/vllm.yaml\`.
- **LiteLLM in front of a server**: use \`{ extends: litellm, … }\`. In place of \`…\`, write settings that say what that
  server supports. For example, llama.cpp does not support a tool choice that names a tool, so write
  \`tool_choice: [auto, none, required]\`. LiteLLM passes on a request for reasoning if LiteLLM's own configuration names the
  model \`hosted_vllm/…\`. If the name is \`openai/…\`, LiteLLM refuses such a request on messages and responses with 400, unless
  the model's \`model_info\` has \`supports_reasoning: true\`.
- **Reasoning**: with one of the profiles above, a client can switch off the reasoning of the model. Without a profile, the
  gateway does not pass on this setting. The model then still reasons, and the client pays for reasoning that it does not see.

## How to read the tables

The vendors' SDKs send each request twice through the gateway, as a stream and as JSON. A column \`client→model\` names the
client's wire and the wire of the model in the configuration.

| Cell | Meaning |
|---|---|
| \`yes\` | the stream and the JSON answer are both correct |
| \`own\` | the server itself is wrong. The list below the table explains the fault |
| \`–\` | the wire does not have this feature |
| \`no\` | without a gateway, the SDK gets a wrong result |
| \`JSON\` | without a gateway, the SDK can read the JSON answer but not the stream |

\`no\` and \`JSON\` occur only in the columns "asked directly", where no gateway is used. If a gateway column of the same row
says \`yes\`, the gateway corrects the fault.

${servers.join('')}## Measured behaviour of other servers

| Server | What it does |
|---|---|
| vLLM 0.32.0 | It accepts at most 4 stop sequences on chat and messages, and answers 400 to more (the profile sets \`max_stops\`). It enforces a tool's schema only if \`strict\` is true. It accepts \`reasoning_effort: none\` on chat, \`thinking: disabled\` on messages, and \`reasoning.effort\` on responses. Its error messages name the model |
| Ollama 0.17.4 | It uses one index for two blocks on messages (thinking, then a call) and for two items on responses. On chat, it ignores \`max_completion_tokens\` and every tool choice. On responses, it reports a cut answer as complete. It shortens over-long prompts without an error |

vLLM and Ollama accept fields that they do not know.

## How to run it

\`npm run test:servers\` takes twelve minutes, and writes this page. It needs Linux on x64, and Python for LiteLLM (3.11 was tried).

- **llama.cpp**: the packages come from the mirror that the machine's own apt uses, or from \`--mirror URL\`. The script
  checks their signatures like apt. The packages are unpacked into \`.servers\`, or into the folder that \`TRIWIRE_SERVERS_DIR\` names.
- **LiteLLM**: the packages come from PyPI, in the versions of \`servers/litellm.txt\`. They go into a Python environment in the
  same folder (770 MB).
- **The machine's own system**: the script installs nothing into it.
- **One server**: add its name, as in \`npm run test:servers -- llama.cpp\` (three minutes).
- **No download**: if a download fails, the run prints \`SKIPPED\`, leaves that server's part of the page as it is, and exits with code 0.
- **CI**: \`.ci/servers\` is a separate step. Debian's unstable release changes often, and these
  changes must not block changes of this repository.

If a new run writes \`no\` into a column of the gateway, the fault counts as a fault of the gateway. If you find that the
server causes the fault, add it to \`servers/known.ts\`. `
}

function partOf(results: Results): string {
  const { server, version, about, billed, differing } = results
  const agreeing = differing.length === 0 ? 'all of them' : `all but ${differing.length}`
  return `## ${server} ${version}

${about}

${tableOf(results)}

In this run, ${billed} answers were complete. For ${agreeing}, the ledger has exactly the usage that the client received.

${ownFaults(results)}

`
}

function ownFaults({ server, version, cells }: Results): string {
  const rows = (knownFaults[server] ?? []).flatMap(({ modelWires, features, isNativeOnly, isMended, words }) => {
    const seen = isMended ? features : features.filter((feature) => isOwn(cells, feature, modelWires))
    const met = isMended ? 'none: the gateway corrects it' : isNativeOnly ? 'clients of the same wire' : 'all clients'
    return seen.length === 0 ? [] : [`| ${modelWires.join(', ')} | ${seen.join('; ')} | ${words} | ${met} |`]
  })
  return [
    `Faults of ${server} ${version} itself:`,
    '',
    '| Wire of the server | Feature | Fault | Clients that see it |',
    '|---|---|---|---|',
    ...rows,
  ].join('\n')
}

function isOwn(cells: readonly Cell[], feature: string, modelWires: readonly ClientWire[]): boolean {
  return cells.some((cell) => cell.feature === feature && modelWires.includes(cell.modelWire) && cell.verdict === 'own')
}
