import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import test from 'node:test'
import { Command } from 'commander'
import { adminOption, askServer } from '../../src/cli/admin.ts'
import { listen } from '../support/listen.ts'

// The server sends this much of its answer, and then nothing. The test shortens the five seconds of patience.
for (const [stage, start] of [
  ['its answer begins', ''],
  ['its answer is complete', 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{'],
] as const)
  test(`a server that is silent before ${stage} is reported as slow, not as missing`, async (t) => {
    const server = createServer(({ socket }) => void socket.write(start))
    const port = await listen(server)
    const timeout = AbortSignal.timeout.bind(AbortSignal)
    t.mock.method(AbortSignal, 'timeout', () => timeout(100))
    process.env['TRIWIRE_TOKEN'] = 'tri-op-any'
    const address = `127.0.0.1:${port}`
    const command = new Command().option(...adminOption).parse(['--admin-listen', address], { from: 'user' })
    assert.deepEqual(await askServer(command, '/api/v1/status'), {
      trouble: `the server on http://${address} did not answer in 5 s: it is busy or stuck. Read its log, or name another address with --admin-listen`,
    })
  })
