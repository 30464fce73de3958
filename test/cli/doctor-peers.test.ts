import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import test from 'node:test'
import { send } from '../../src/cli/ask.ts'
import { planProbes } from '../../src/cli/doctor/plan-probes.ts'
import { readAnswer } from '../../src/cli/doctor/read-answer.ts'
import { runProbe } from '../../src/cli/doctor/run-probe.ts'
import { listen } from '../support/listen.ts'

async function serve(answer: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(answer))}`
}

test('issue 51: a server that does not count cached tokens fails no probe, as the wires’ types allow it; triwire counts them', async () => {
  const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }
  const message = { role: 'assistant', content: 'Hello.' }
  const origin = await serve((_, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ id: 'c', choices: [{ index: 0, message, finish_reason: 'stop' }], usage }))
  })
  const probe = planProbes(['m']).find(({ wire, name }) => wire === 'chat' && name === 'cache hit')!
  for (const [isPeer, result, note] of [
    [true, 'none', 'unlike triwire: the count of cached tokens is missing'],
    [false, 'failed', 'the count of cached tokens is missing'],
  ] as const) {
    const found = await runProbe(probe, { origin, key: 'sk-test-1', timeoutMs: 10_000, isPeer })
    assert.deepEqual([found.result, found.note], [result, note])
  }
})

test('issue 51: a stream that breaks off is reported with the error that its wire sends in an event', () => {
  const events = {
    chat: { error: { message: 'Overloaded', type: 'server_error' } },
    messages: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    responses: { type: 'error', code: 'server_error', message: 'Overloaded', param: null, sequence_number: 0 },
  }
  for (const [wire, event] of Object.entries(events)) {
    const seen = {
      status: 200,
      headers: new Headers({ 'content-type': 'text/event-stream' }),
      text: `data: ${JSON.stringify(event)}\n\n`,
      firstByteMs: 1,
      totalMs: 1,
    }
    const read = () => readAnswer(wire as 'chat', true, seen as never)
    assert.throws(read, { message: 'the stream ended without its terminator: Overloaded' }, wire)
  }
})

test('issue 51: a connection that breaks within an answer is not reported as one that does not speak HTTP', async () => {
  const url = await serve((_, response) => {
    response.write('12345', () => setImmediate(() => response.destroy()))
  })
  const broken = send({ url, headers: {}, timeoutMs: 10_000 })
  await assert.rejects(broken, /^Error: it broke the connection after 5 bytes of the answer \(ECONNRESET\)$/)
})

test('doctor asks a model that refuses forced calls for an unforced call, and other refusals fail', async () => {
  const tool = { id: 'c1', type: 'function', function: { name: 'report', arguments: '{"ok":true}' } }
  const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }
  const find = async (isCalling: boolean, status = 400) => {
    const origin = await serve((request, response) => {
      let text = ''
      request.on('data', (piece) => {
        text += piece
      })
      request.on('end', () => {
        const { tool_choice: choice, messages, stream } = JSON.parse(text)
        if (choice !== undefined) {
          response.writeHead(status, { 'content-type': 'application/json' })
          response.end(
            JSON.stringify({ error: { message: 'tool_choice is not supported', type: 'invalid_request_error' } }),
          )
          return
        }
        const isCall = isCalling && messages.at(-1).role === 'user'
        const message = isCall
          ? { role: 'assistant', content: null, tool_calls: [{ index: 0, ...tool }] }
          : { role: 'assistant', content: 'Filed.' }
        const choiceOf = (key: string) => ({ index: 0, [key]: message, finish_reason: isCall ? 'tool_calls' : 'stop' })
        if (!stream) {
          response.setHeader('content-type', 'application/json')
          response.end(JSON.stringify({ id: 'c', choices: [choiceOf('message')], usage }))
          return
        }
        response.setHeader('content-type', 'text/event-stream')
        const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choiceOf('delta')] }
        const last = { ...chunk, choices: [], usage }
        response.end(`data: ${JSON.stringify(chunk)}\n\ndata: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`)
      })
    })
    const probe = planProbes(['m']).find(({ wire, name }) => wire === 'chat' && name === 'tool call')!
    const found = await runProbe(probe, { origin, key: 'sk-test-1', timeoutMs: 10_000, isPeer: false })
    return [found.result, found.note]
  }
  assert.deepEqual(await find(true), ['ok', 'not forced, which this model refuses: {"ok":true}'])
  const [result, note] = await find(false)
  assert.equal(result, 'none')
  assert.match(note!, /^no call, and none can be forced: status 400: tool_choice is not supported/)
  assert.equal((await find(true, 500))[0], 'failed')
})
