import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { pathToFileURL } from 'node:url'
import { run } from '../cli/run.ts'
import { testFolder } from '../support/folder.ts'
import { anyPorts, serve } from '../support/serve.ts'

/** Writes down what is loaded, in every process and thread that the program starts. */
const spy = `import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
registerHooks({ load(url, context, next) { appendFileSync(process.env.SPY_FILE, url + '\\n'); return next(url, context) } })
`

test('X6 with a SQLite store nothing of PostgreSQL is loaded, neither by the server nor by the command line', async () => {
  const folder = testFolder('loaded')
  const [program, loaded] = [join(folder, 'spy.mjs'), join(folder, 'loaded')]
  writeFileSync(program, spy)
  writeFileSync(loaded, '')
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(program)}`, SPY_FILE: loaded }
  const store = ['--store', join(folder, 'triwire.db')]
  assert.equal((await run(['account', 'create', 'one', ...store], { env })).code, 0)
  const copied = await run(['store', 'copy', '--to', join(folder, 'other.db'), ...store], { env })
  assert.equal(copied.code, 0, copied.stderr)
  const server = serve([...anyPorts, '--store', join(folder, 'other.db')], folder, { env })
  await server.url()
  server.child.kill('SIGTERM')
  await server.exited
  const urls = readFileSync(loaded, 'utf8').split('\n')
  assert.ok(urls.some((url) => url.endsWith('/store/sqlite/worker.ts')))
  assert.ok(urls.some((url) => url.endsWith('/store/copy/sqlite-end.ts')))
  assert.deepEqual(
    urls.filter((url) => /\/node_modules\/pg|\/store\/postgres\//.test(url)),
    [],
  )
})
