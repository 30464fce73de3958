import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import test from 'node:test'
import { configFile, model, newFolder, serve } from '../support/serve.ts'

test('X7: --workers with SQLite is refused with a reason, and nothing is opened', async () => {
  const folder = newFolder()
  const { exited, stderr } = serve(['--workers', '2', '--config', configFile(folder, model('m'))], folder)
  assert.equal(await exited, 1)
  assert.match(stderr(), /^triwire: --workers needs a store that several processes can serve from, and with SQLite/)
  assert.deepEqual(readdirSync(folder), ['triwire.yaml'])
})
