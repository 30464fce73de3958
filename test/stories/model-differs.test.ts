import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import type { Explanation } from '../../src/operations/shapes.ts'
import { runWarm } from '../cli/run.ts'
import { answerNanos, answers, asks, frames, type Native, paths, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'

let native: Native
before(async () => {
  native = await startNative()
})
after(() => native.close())

/** Each name that an answer gives its model, and whether it is another one than the entry's. */
const named: [name: string | undefined, differs: boolean][] = [
  ['up-WIRE', false],
  ['up-WIRE-2026-01-02', false],
  ['vendor/UP-WIRE', false],
  [undefined, false],
  ['', false],
  ['dear', true],
  ['up-WIRE-pro', true],
]

const pairs = clientWireNames.flatMap((client) => clientWireNames.map((model) => [client, model] as const))

for (const [client, model] of pairs) {
  for (const isStream of [false, true]) {
    test(`Y13 an answer by another model is flagged, counted and billed: ${client} to ${model}, ${isStream ? 'stream' : 'JSON'}`, async () => {
      for (const [name, differs] of named) {
        const [before, doubts] = [balance(), await counted(`native-${model}`)]
        const told = name?.replace('WIRE', model)
        const spell = (text: string) =>
          told === undefined ? text.replaceAll(`"model":"up-${model}",`, '') : text.replaceAll(`up-${model}`, told)
        native.upstream.play(
          isStream ? stream(frames[model].map(spell)) : whole(JSON.parse(spell(JSON.stringify(answers[model])))),
        )
        const answer = await native.ask(client, { model: `native-${model}`, stream: isStream })
        assert.deepEqual([answer.status, answer.isCut], [200, false])
        assert.ok(!answer.text.includes('dear'), 'the client sees the name that it asked for')
        const { flags } = (await native.gateway.logOf(answer.id)) as { flags?: string[] }
        assert.deepEqual(flags, differs ? ['model_differs'] : undefined, `${name}`)
        assert.equal(await counted(`native-${model}`), doubts + (differs ? 1 : 0))
        assert.equal(before - balance(), answerNanos)
      }
    })
  }
}

test('Y13 a stream that names another model only in the middle is flagged, also if it is cut there', async () => {
  const [first, second, ...rest] = frames.chat
  const other = second!.replace('up-chat', 'dear')
  for (const [client, wire] of [
    ['chat', 'chat'],
    ['messages', 'chat'],
  ] as const) {
    for (const cut of [false, true]) {
      native.upstream.play(stream([first!, other, ...(cut ? [] : rest)]))
      const answer = await native.ask(client, { model: `native-${wire}`, stream: true })
      assert.equal(answer.status, 200)
      const { flags } = (await native.gateway.logOf(answer.id)) as { flags: string[] }
      assert.ok(flags.includes('model_differs'), `${client} ${cut}`)
    }
  }
})

test('Y13 explain shows the other model, the debit is made, and a name that the profile expects is not another model', async () => {
  native.upstream.play(whole({ ...answers.chat, model: 'dear' }))
  const { id } = await native.ask('chat')
  await native.gateway.logOf(id)
  const { stdout } = await runWarm(['explain', id, '--json', ...ofServer()])
  const { settlement } = JSON.parse(stdout) as Explanation
  assert.deepEqual([settlement.flags, settlement.state], [['model_differs'], 'in the ledger'])
  assert.match((await runWarm(['explain', id, ...ofServer()])).stdout, /\n {2}flags +model_differs\n/)

  const profile = { answer_names: ['Dea*'] }
  const model = { id: 'native-chat', wire: 'chat', upstream: 'sim', upstream_model: 'up-chat', max_output_tokens: 8192 }
  const catalog = { pinned: '2026-11-01', models: [{ ...model, prices: { input: '3', output: '15' }, profile }] }
  native.gateway.reload({ catalog })
  native.upstream.play(whole({ ...answers.chat, model: 'dear' }))
  const { id: again } = await native.ask('chat')
  assert.equal((await native.gateway.logOf(again))['flags'], undefined)
})

test('Y13 fields that choose another model are not sent to any upstream, and are listed in the log', async () => {
  const own = await startNative()
  const fields = { models: ['dear'], Provider: { order: ['x'] }, fallbacks: [{ model: 'dear' }], num_retries: 50 }
  for (const wire of clientWireNames) {
    own.upstream.play(whole(answers[wire]))
    const { id } = await own.ask(wire, fields)
    const sent = own.upstream.requests.at(-1)!.json()
    const added = wire === 'responses' ? ['store'] : []
    assert.deepEqual(Object.keys(sent), [...Object.keys(asks[wire]), ...added], paths[wire])
    assert.deepEqual((await own.gateway.logOf(id))['losses'], ['models', 'provider', 'fallbacks', 'num_retries'])
  }
  await own.close()
})

function balance(): bigint {
  return native.gateway.store.findAccount('tester').balanceNanos
}

async function counted(model: string): Promise<number> {
  const text = await (await native.gateway.askAdmin('/metrics')).text()
  const line = new RegExp(`^triwire_usage_doubts_total\\{model="${model}",flag="model_differs"\\} (\\d+)$`, 'm').exec(
    text,
  )
  return Number(line?.[1] ?? 0)
}

function ofServer(): string[] {
  return ['--config', native.gateway.configPath, '--admin-listen', new URL(native.gateway.adminUrl).host]
}
