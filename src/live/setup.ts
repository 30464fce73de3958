import { randomBytes } from 'node:crypto'
import { mayUse } from '../accounts/key-bounds.ts'
import type { ClientWire, ModelWire } from '../catalog/wire-names.ts'
import { clientUrlMistake, findClientUrl, readClientUrl } from '../config/client-url.ts'
import type { Config } from '../config/config.ts'
import type { ClientRow, Setup } from '../operations/live-shapes.ts'
import type { SetupAsked } from '../operations/operation.ts'
import { ProblemError, wrongField } from '../operations/problem.ts'
import { describeWindow, linesOf, settingsOf } from '../programs/describe.ts'
import {
  type Candidate,
  chooseModel,
  chooseSmall,
  findFigures,
  isWritable,
  listCandidates,
} from '../programs/figures.ts'
import { programs } from '../programs/known/index.ts'
import type { Access, Program, Settings } from '../programs/program.ts'
import { keyPlaceholder, keyVariable, shellNames } from '../programs/shells.ts'

/** Titles of programs. A program that is missing here has its own name, with a capital letter, as its title. */
const titles: Readonly<Record<string, string>> = {
  'openai-node': 'OpenAI SDK for Node',
  'openai-python': 'OpenAI SDK for Python',
  'anthropic-node': 'Anthropic SDK for Node',
  'anthropic-python': 'Anthropic SDK for Python',
  'claude-code': 'Claude Code',
  opencode: 'OpenCode',
  'qwen-code': 'Qwen Code',
  copilot: 'GitHub Copilot CLI',
  'kimi-code': 'Kimi Code',
  cn: 'Continue',
  'mini-swe-agent': 'mini-SWE-agent',
  vscode: 'VS Code',
  'ai-sdk': 'AI SDK',
  langchain: 'LangChain',
  'openai-agents': 'OpenAI Agents SDK',
}

export function listClients(): ClientRow[] {
  return Object.entries(programs).map(([client, { wires }]) => ({ client, title: titleOf(client), wires }))
}

/**
 * Returns the settings that `triwire setup` prints, with the address and the models of this server.
 * @throws ProblemError for a client or model that does not exist
 */
export function setUp(config: Config, client: string, asked: SetupAsked): Setup {
  const { catalog } = config
  const program = new Map(Object.entries(programs)).get(client)
  if (!program) throw new ProblemError('not_found', `There is no client "${client}": GET /setup lists them.`)
  const ids = [...catalog.models.keys()].filter((id) => mayUse(asked.models, id))
  const list = listCandidates(ids.filter(isWritable), catalog.models).map((one) =>
    asked.isOwner ? withoutWire(one) : one,
  )
  const model = asked.model ?? chooseModel(program, list)?.model
  if (model === undefined || !ids.includes(model)) throw wrongField('model', 'is not a model that clients can name')
  const chosen = list.find((one) => one.model === model)
  if (!chosen) throw wrongField('model', 'has quotes or control characters: give it an alias')
  const wire = chooseWire(program, asked.isOwner ? undefined : catalog.models.get(model)?.wire, asked.wire)
  const figures = findFigures(model, {}, catalog.models.get(model))
  const { contextWindow, outputTokensMax } = figures
  const reached = asked.url === undefined ? findClientUrl(config) : { url: readUrl(asked.url), from: 'asked' as const }
  const origin = reached.url
  const models = [chosen, ...list.filter((one) => one !== chosen)]
  const session = randomBytes(6).toString('hex')
  const choices = { model, small: chooseSmall(program, models), models }
  const access: Access = { origin, key: keyPlaceholder, contextWindow, outputTokensMax, ...choices, session }
  const settings = settingsOf(program, access, wire)
  // If the settings contain source code, the code reads the key from `keyVariable`, so `env` sets that variable.
  const env = settings.code ? { ...settings.env, [keyVariable]: keyPlaceholder } : settings.env
  const window = describeWindow(program, client, { access, figures }, false)
  return {
    client,
    title: titleOf(client),
    wire,
    model,
    base_url: origin,
    base_url_from: reached.from,
    files: filesOf(settings),
    lines: shellNames.flatMap((shell) => {
      const text = linesOf({ ...settings, env }, shell).join('\n')
      return text === '' ? [] : [{ shell, text }]
    }),
    steps: settings.steps ?? [],
    notes: [
      ...(settings.note === undefined ? [] : [settings.note]),
      ...(program.asks ? [program.asks.ifPrinted] : []),
      ...(window ? [window] : []),
      ...(config.ownPage === undefined
        ? []
        : [`With your key, ${config.ownPage} shows your requests and what is left.`]),
    ],
  }
}

/** Removes the wires from a model's entry, because an owner of a key may not see them (ruling X14). */
function withoutWire(candidate: Candidate): Candidate {
  return { ...candidate, wire: undefined, hostedToolsWire: undefined }
}

function titleOf(client: string): string {
  return titles[client] ?? client.charAt(0).toUpperCase() + client.slice(1)
}

function chooseWire({ wires }: Program, modelWire: ModelWire | undefined, asked: ClientWire | undefined): ClientWire {
  if (asked !== undefined && !wires.includes(asked)) throw wrongField('wire', `must be one of ${wires.join(', ')}`)
  return asked ?? wires.find((wire) => wire === modelWire) ?? wires[0]!
}

function filesOf({ files = [], code }: Settings): Setup['files'] {
  const own = files.map(({ path, text }) => ({ path, language: /\.(toml|yaml)$/.exec(path)?.[1] ?? 'json', text }))
  return code ? [...own, { path: null, ...code }] : own
}

function readUrl(text: string): string {
  const mistake = clientUrlMistake(text)
  if (mistake) throw wrongField('url', mistake)
  return readClientUrl(text)
}
