import assert from 'node:assert/strict'
import test from 'node:test'
import { runWarm } from '../cli/run.ts'
import { answers, startNative } from '../support/native.ts'
import { whole } from '../support/raw-upstream.ts'

test('CON-8 a model that always fails is shown as failing by API, status, command line and metrics, though its only account is ready', async () => {
  const native = await startNative()
  const { gateway, upstream } = native
  const read = async (path: string) => (await gateway.askAdmin(`/api/v1/${path}`)).json() as Promise<never>
  const look = async () => {
    const { items: upstreams } = (await read('upstreams')) as {
      items: { model: string; state: string; failing: boolean }[]
    }
    const { items: models } = (await read('models')) as { items: { id: string; failing: boolean }[] }
    const { failing } = (await read('status')) as { failing: string[] }
    const metrics = await (await gateway.askAdmin('/metrics')).text()
    const row = upstreams.find(({ model }) => model === 'native-chat')!
    const gauge = /^triwire_model_failing\{model="native-chat"\} (\d)$/m.exec(metrics)?.[1]
    assert.equal(models.find(({ id }) => id === 'native-messages')!.failing, false)
    return [row.state, row.failing, models.find(({ id }) => id === 'native-chat')!.failing, failing, gauge]
  }
  const well = ['ready', false, false, [], '0']
  assert.deepEqual(await look(), well)
  upstream.play(whole({ error: { message: 'lost', type: 'api_error' } }, 500))
  for (let at = 0; at < 14; at++) assert.equal((await native.ask('chat')).status, 502)
  assert.deepEqual(await look(), ['ready', true, true, ['native-chat'], '1'])
  const of = ['--config', gateway.configPath, '--admin-listen', new URL(gateway.adminUrl).host]
  assert.match((await runWarm(['upstreams', ...of])).stdout, /native-chat .* failing/)
  assert.match((await runWarm(['status', ...of])).stdout, /^failing +native-chat$/m)
  upstream.play(whole(answers.chat))
  for (let at = 0; at < 11; at++) assert.equal((await native.ask('chat')).status, 200)
  assert.deepEqual(await look(), well)
  await native.close()
})
