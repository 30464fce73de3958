import assert from 'node:assert/strict'
import { connect } from 'node:net'
import test, { after, before } from 'node:test'
import { answers, asks, chunk, type Native, paths, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'

let native: Native
before(async () => {
  native = await startNative()
})
after(async () => {
  native.gateway.takeViolations()
  await native.close()
})

const wrongChoice = { index: 'first', message: { role: 'assistant', content: 5 }, finish_reason: 'stop' }

/** Where the types of the answers so far are broken. */
function placesFound(): string[] {
  return native.gateway.takeViolations().map((text) => text.split(': ')[0]!)
}

test('spec 2.6 an error of a provider on its own wire is seen once, whole and streamed', async () => {
  native.upstream.play(whole({ ...answers.chat, choices: [wrongChoice] }))
  await native.ask('chat')
  const whole200 = 'POST /v1/chat/completions 200 body.choices.0'
  assert.deepEqual(placesFound(), [`${whole200}.index`, `${whole200}.message.content`])
  assert.deepEqual(placesFound(), [])

  const choice = { index: 0, delta: { content: 5 }, finish_reason: null }
  native.upstream.play(stream([chunk({ choices: [choice] }), 'data: [DONE]\n\n']))
  await native.ask('chat', { stream: true })
  assert.ok(placesFound().includes('POST /v1/chat/completions 200 chunk.choices.0.delta.content'))
})

test('spec 7.1 answers to a raw socket are seen too, and an unread finding fails the test that closes', async () => {
  const other = await startNative()
  other.upstream.play(whole({ ...answers.chat, choices: [wrongChoice] }))
  const body = JSON.stringify(asks.chat)
  const socket = connect(Number(new URL(other.gateway.url).port), '127.0.0.1')
  const head = `POST ${paths.chat} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${other.gateway.key}\r\n`
  socket.write(`${head}connection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  await new Promise((resolve) => socket.resume().on('close', resolve))
  await assert.rejects(other.gateway.close(), /chat\/completions 200 body\.choices\.0\.index/)
  await other.upstream.close()
})
