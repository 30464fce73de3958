import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { pathToFileURL } from 'node:url'
import { testFolder } from '../support/folder.ts'
import { freePort } from '../support/listen.ts'
import { patienceMs } from '../support/waiting.ts'

/** Of two workers one is stopped, given a connection, and killed; prints who answers two clients. */
const program = `import cluster from 'node:cluster'
import { once } from 'node:events'
const { returnHandovers } = await import(process.argv[2])
cluster.schedulingPolicy = cluster.SCHED_RR
cluster.setupPrimary({ exec: process.argv[3], args: [process.argv[4]] })
const workers = [cluster.fork(), cluster.fork()]
workers.forEach(returnHandovers)
await Promise.all(workers.map((worker) => once(worker, 'listening')))
const [stopped, other] = workers
stopped.process.kill('SIGSTOP')
const ask = async () => (await fetch('http://127.0.0.1:' + process.argv[4], { headers: { connection: 'close' } })).text()
const answers = [ask(), ask()]
await Promise.race(answers)
stopped.process.kill('SIGKILL')
const names = new Map([[String(stopped.process.pid), 'killed'], [String(other.process.pid), 'other']])
console.log((await Promise.all(answers)).map((pid) => names.get(pid)).join())
other.process.kill('SIGKILL')
`
const worker = `import { createServer } from 'node:http'
createServer((_, answer) => answer.end(String(process.pid))).listen(Number(process.argv[2]), '127.0.0.1')
`

test('X7 a connection that was on its way to a worker that died is answered by another', async () => {
  const folder = testFolder('handovers')
  const [main, own] = [join(folder, 'main.mjs'), join(folder, 'worker.mjs')]
  writeFileSync(main, program)
  writeFileSync(own, worker)
  const handovers = pathToFileURL(join(import.meta.dirname, '../../src/workers/handovers.ts')).href
  const args = ['--no-warnings', main, handovers, own, String(await freePort())]
  const told = execFileSync(process.execPath, args, { encoding: 'utf8', timeout: patienceMs, killSignal: 'SIGKILL' })
  assert.equal(told, 'other,other\n')
})
