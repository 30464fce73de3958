import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { anyPorts, serve } from '../support/serve.ts'
import { until } from '../support/waiting.ts'

const skip = process.platform !== 'linux'

function countPoolThreads(pid: number): number {
  const tasks = `/proc/${pid}/task`
  return readdirSync(tasks).filter((id) => readFileSync(`${tasks}/${id}/comm`, 'utf8').startsWith('libuv-worker'))
    .length
}

test('F-U3 the program has threads for eight simultaneous lookups of names that no server answers', {
  skip,
}, async () => {
  const server = serve(anyPorts)
  await server.url()
  await until(() => countPoolThreads(server.child.pid!) === 16)
  server.child.kill('SIGTERM')
  assert.equal(await server.exited, 0)
})
