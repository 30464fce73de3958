import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import type { Explanation } from '../../src/operations/shapes.ts'
import { runWarm } from '../cli/run.ts'
import { answerNanos, answers, frames, type Native, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'
import { inFrame, type Said, withService } from '../support/served.ts'

/*
 * Y17, money.md 1 b: an answer that was served by a tier, at a speed or in a geography that has no price is flagged, counted,
 * shown and billed at the base price. The kind is: three members, in the answer and in its usage, on nine pairs, as JSON and
 * as a stream, told early or late, cut or whole, in any case.
 */

let native: Native
before(async () => {
  native = await startNative()
})
after(() => native.close())

const cases: Record<ClientWire, [said: Said, isUnpriced: boolean][]> = {
  chat: [
    [{}, false],
    ...['default', 'standard', 'auto', 'on_demand', 'scale', 'reserved', 'DEFAULT', '', null].map(
      (word): [Said, boolean] => [{ answer: { service_tier: word } }, false],
    ),
    ...['priority', 'fast', 'flex', 'ultrafast', 'Priority', 'performance'].map((word): [Said, boolean] => [
      { answer: { service_tier: word } },
      true,
    ]),
    [{ usage: { speed: 'fast' } }, true],
    [{ usage: { service_tier: 'flex' } }, true],
  ],
  responses: [
    [{}, false],
    [{ answer: { service_tier: 'default' } }, false],
    [{ answer: { service_tier: 'priority' } }, true],
    [{ answer: { service_tier: 'flex' } }, true],
    [{ usage: { inference_geo: 'eu' } }, true],
  ],
  messages: [
    [{}, false],
    [{ usage: { service_tier: 'standard', speed: 'standard', inference_geo: 'global' } }, false],
    [{ usage: { service_tier: 'priority', speed: null, inference_geo: 'not_available' } }, false],
    [{ usage: { service_tier: 'batch' } }, true],
    [{ usage: { speed: 'fast' } }, true],
    [{ usage: { inference_geo: 'us' } }, true],
    [{ usage: { service_tier: 'standard', speed: 'standard', inference_geo: 'us' } }, true],
  ],
}

const pairs = clientWireNames.flatMap((client) => clientWireNames.map((model) => [client, model] as const))

for (const [client, model] of pairs) {
  for (const isStream of [false, true]) {
    test(`Y17 a tier without a price is flagged, counted and billed at the base: ${client} to ${model}, ${isStream ? 'stream' : 'JSON'}`, async () => {
      for (const [said, isUnpriced] of cases[model]) {
        const [before, doubts] = [balance(), await counted(`native-${model}`)]
        native.upstream.play(
          isStream
            ? stream(frames[model].map((frame) => inFrame(frame, said)))
            : whole(withService(answers[model], said)),
        )
        const answer = await native.ask(client, { model: `native-${model}`, stream: isStream })
        assert.deepEqual([answer.status, answer.isCut], [200, false])
        const { flags } = (await native.gateway.logOf(answer.id)) as { flags?: string[] }
        assert.deepEqual(flags, isUnpriced ? ['tier_unpriced'] : undefined, JSON.stringify(said))
        assert.equal(await counted(`native-${model}`), doubts + (isUnpriced ? 1 : 0))
        assert.equal(before - balance(), answerNanos)
      }
    })
  }

  test(`Y17 the last tier that a stream reports decides, also if the stream is cut: ${client} to ${model}`, async () => {
    const [tier, base] = model === 'messages' ? ['batch', 'standard'] : ['priority', 'default']
    const said = (word: string): Said =>
      model === 'messages' ? { usage: { service_tier: word } } : { answer: { service_tier: word } }
    const half = Math.ceil(frames[model].length / 2)
    const told = (early: string, late: string) =>
      frames[model].map((frame, i) => inFrame(frame, said(i < half ? early : late)))
    const rows: [played: string[], isUnpriced: boolean][] = [
      [told(tier!, base!), false],
      [told(base!, tier!), true],
      [told(tier!, base!).slice(0, half), true],
    ]
    for (const [played, isUnpriced] of rows) {
      native.upstream.play(stream(played))
      const { id } = await native.ask(client, { model: `native-${model}`, stream: true })
      const { flags = [] } = (await native.gateway.logOf(id)) as { flags?: string[] }
      assert.equal(flags.includes('tier_unpriced'), isUnpriced, `${played.length} frames: ${flags}`)
    }
  })
}

test('Y17 a tier in the head of the answer takes precedence over one in the body', async () => {
  const rows: [header: string | undefined, body: string | undefined, isUnpriced: boolean][] = [
    ['priority', undefined, true],
    ['flex', 'default', true],
    ['standard', 'priority', false],
    ['standard', undefined, false],
    [undefined, 'priority', true],
  ]
  for (const client of clientWireNames) {
    for (const isStream of [false, true]) {
      for (const [tier, word, isUnpriced] of rows) {
        const headers: Record<string, string> = tier === undefined ? {} : { 'x-gemini-service-tier': tier }
        const said: Said = { answer: { service_tier: word } }
        native.upstream.play(
          isStream
            ? stream(
                frames.chat.map((frame) => inFrame(frame, said)),
                { headers },
              )
            : whole(withService(answers.chat, said), 200, headers),
        )
        const { id, headers: shown } = await native.ask(client, { model: 'native-chat', stream: isStream })
        const { flags = [] } = (await native.gateway.logOf(id)) as { flags?: string[] }
        assert.deepEqual(flags, isUnpriced ? ['tier_unpriced'] : [], `${tier} ${word}`)
        assert.equal(shown.get('x-gemini-service-tier'), null)
      }
    }
  }
})

test('Y17 explain shows the unpriced tier, and the debit is made', async () => {
  native.upstream.play(whole({ ...answers.chat, service_tier: 'priority' }))
  const { id } = await native.ask('chat')
  await native.gateway.logOf(id)
  const ofServer = ['--config', native.gateway.configPath, '--admin-listen', new URL(native.gateway.adminUrl).host]
  const { stdout } = await runWarm(['explain', id, '--json', ...ofServer])
  const { settlement } = JSON.parse(stdout) as Explanation
  assert.deepEqual([settlement.flags, settlement.state], [['tier_unpriced'], 'in the ledger'])
})

function balance(): bigint {
  return native.gateway.store.findAccount('tester').balanceNanos
}

async function counted(model: string): Promise<number> {
  const text = await (await native.gateway.askAdmin('/metrics')).text()
  const line = new RegExp(`^triwire_usage_doubts_total\\{model="${model}",flag="tier_unpriced"\\} (\\d+)$`, 'm')
  return Number(line.exec(text)?.[1] ?? 0)
}
