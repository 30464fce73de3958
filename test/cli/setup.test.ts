import { writeFileSync } from 'node:fs'
import test, { before } from 'node:test'
import { Command } from 'commander'
import { addSetupCommand } from '../../src/cli/setup/setup.ts'
import { programs } from '../../src/programs/known/index.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'

/*
 * What `triwire setup NAME` prints, to the byte: people paste it. The texts stand in setup.test.ts.snapshot. After a
 * change that is meant: npm test -- test/cli/setup.test.ts --test-update-snapshots, and read the difference.
 */

// Alone in its process: it changes the folder and the environment, and its snapshots stand beside it.
process.chdir(testFolder('setup'))
delete process.env['TRIWIRE_CONFIG']
const models = (['chat', 'messages', 'responses'] as const).map((wire) =>
  testModel(`sim-${wire}`, wire, { context_window: 128_000, profile: 'simulator' }),
)
const config = {
  upstreams: { sim: { base_url: 'http://127.0.0.1:9/v1', accounts: [{ name: 'a', key: 'k' }] } },
  catalog: { pinned: '2026-11-01', models },
}
writeFileSync('triwire.yaml', JSON.stringify(config))

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({ models: [testModel('large', 'messages')] })
})
process.env['SHELL'] = '/bin/bash'

for (const [name, { wires }] of Object.entries(programs)) {
  test(`setup ${name} prints`, async (t) => {
    for (const wire of wires) {
      const printed = await setup(t, name, '--wire', wire, '--model', 'sim-chat', '--small-model', 'sim-messages')
      t.assert.snapshot(`${wire}\n\n${printed}`, { serializers: [String] })
    }
    const options = ['--url', `${gateway.url}/v1/`, '--key', 'k', '--context-window', '200k', '--max-output', '16000']
    const json = await setup(t, name, ...options, '--json')
    t.assert.snapshot(json.replaceAll(gateway.url, 'https://gateway.example'), { serializers: [String] })
  })
}

test('setup accepts the shorter names, and its help lists all', async (t) => {
  for (const alias of [
    'openai',
    'anthropic',
    'claude',
    'vercel-ai-sdk',
    'vercel',
    'continue',
    'kimi',
    'qwen',
    'code',
  ]) {
    const printed = JSON.parse(await setup(t, alias, '--json'))
    t.assert.snapshot(`${alias}: ${printed.client}`, { serializers: [String] })
  }
  const help = createRoot().commands[0]!.helpInformation()
  t.assert.snapshot(help, { serializers: [String] })
})

function createRoot(): Command {
  const root = new Command('triwire').option('--json').exitOverride()
  addSetupCommand(root)
  return root
}

async function setup(t: test.TestContext, ...args: string[]): Promise<string> {
  const log = t.mock.method(console, 'log', () => {})
  const note = t.mock.method(console, 'error', () => {})
  await createRoot().parseAsync(['setup', ...args], { from: 'user' })
  log.mock.restore()
  note.mock.restore()
  const printed = log.mock.calls.map(({ arguments: [text] }) => String(text)).join('\n')
  // The word of this user and machine (NEW-16).
  return printed.replaceAll(/-[0-9a-f]{12}\b/g, '-SESSION')
}
