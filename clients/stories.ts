import { npmAgents as agents } from './agents/npm.ts'
import { programOf } from './installs.ts'
import { modelOf, openPlace, type Place, type Ran, run, scripted, setUp } from './place.ts'

/** The result of one of the further tests of the page, such as an agent's retry after a refusal. */
export type Story = { name: string; failures: string[] }

const limitMs = 60_000
const done = 'That is the answer.'

type Plot = {
  name: string
  client: string
  modelWire: 'messages' | 'chat' | 'responses'
  /** Arguments beside the agent's own. */
  args?: readonly string[]
  /** The model's script until it gets its first request. */
  first?: object
  judge(ran: Ran, place: Place, lines: Record<string, unknown>[]): [boolean, string][]
}

const plots: readonly Plot[] = [
  {
    name: 'R3 Codex tries a WebSocket first, gets 426 once, and continues over HTTP',
    client: 'codex',
    modelWire: 'responses',
    args: ['-c', 'model_providers.triwire.supports_websockets=true'],
    judge: ({ stdout }, _place, lines) => {
      // Codex sometimes also requests the list of models at its start.
      const probes = lines.filter(({ path }) => path === '/v1/responses')
      return [
        [stdout.includes(done), 'it has no answer'],
        [statuses(probes, 'GET').join() === '426', `its probes were answered ${statuses(probes, 'GET').join()}`],
      ]
    },
  },
  {
    name: 'T6 if Codex uses hosted search with a model on another wire, the error names the setting to change',
    client: 'codex',
    modelWire: 'chat',
    args: ['-c', 'web_search="live"'],
    judge: ({ stdout, stderr }, { gateway }, lines) => [
      [`${stdout}${stderr}`.includes('web_search = '), 'the setting is not named'],
      [statuses(lines, 'POST').join() === '400', `it was answered ${statuses(lines, 'POST').join()}`],
      [gateway.simulator.requests.length === 0, 'the model was asked'],
    ],
  },
  ...(['claude-code', 'codex', 'opencode', 'pi'] as const).map(
    (client): Plot => ({
      name: `R6 ${client} waits for the retry-after of a busy model and then gets its answer`,
      client,
      modelWire: 'chat',
      first: { status: 429, retry_after: 2 },
      judge: ({ stdout }, { gateway }) => {
        const seen = gateway.simulator.requests.filter(({ json }) => (json as { model?: string }).model === scripted)
        return [
          [stdout.includes(done), 'it has no answer'],
          [
            seen.map(({ status }) => status).join() === '429,200',
            `the model answered ${seen.map((r) => r.status).join()}`,
          ],
        ]
      },
    }),
  ),
  {
    name: 'spec 7.4 Claude Code retries a stream that was cut, and gets its answer',
    client: 'claude-code',
    modelWire: 'responses',
    first: { reply: 'It begins and', cut: { after_events: 6 } },
    judge: ({ stdout }) => [[stdout.includes(done), 'it has no answer']],
  },
]

export const storyCount = plots.length

export async function runStory(at: number): Promise<Story> {
  const { name, client, modelWire, args = [], first, judge } = plots[at]!
  const agent = agents.find((one) => one.client === client)!
  const place = await openPlace()
  try {
    const { gateway, work, env } = place
    const { simulator } = gateway
    const model = modelOf(modelWire)
    const settings = await setUp(place, client, agent.wires[0]!, model)
    simulator.script(scripted, first ?? { reply: done })
    const changing = setInterval(() => {
      if (simulator.requests.some(({ json }) => (json as { model?: string })?.model === scripted))
        simulator.script(scripted, { reply: done })
    }, 5)
    const ran = await run(
      programOf(agent.source),
      [...agent.args('What is the answer?', model, agent.wires[0]!), ...args],
      {
        cwd: work,
        env: { ...env, ...agent.env, ...settings.env },
        limitMs,
      },
    )
    clearInterval(changing)
    const verdicts = judge(ran, place, await gateway.logLines())
    return { name, failures: verdicts.flatMap(([isSo, otherwise]) => (isSo ? [] : [otherwise])) }
  } catch (error) {
    return { name, failures: [String(error)] }
  } finally {
    await place.close()
  }
}

function statuses(lines: readonly Record<string, unknown>[], method: string): unknown[] {
  return lines.filter((line) => line['method'] === method).map((line) => line['status'])
}
