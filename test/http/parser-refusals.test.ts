import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway()
})
after(() => gateway.close())

/** Heads that the parser itself stops in, before there is a request to route. */
const faults = ['content-length: -1', 'content-length: 2\r\ncontent-length: 3', 'no colon here']

for (const fault of faults) {
  test(`R11 spec 7.1 a head that cannot be parsed is refused in the envelope of its path: ${fault.replace(/\r\n/g, ', ')}`, async () => {
    const send = (path: string) => raw(gateway.url, `POST ${path} HTTP/1.1\r\nhost: x\r\n${fault}\r\n\r\n{}`)
    const onMessages = await send('/v1/messages?beta=true')
    const onChat = await send('/v1/chat/completions')
    for (const { text } of [onMessages, onChat]) assert.match(text, /^HTTP\/1\.1 400 /)
    const messages = JSON.parse(onMessages.text.split('\r\n\r\n')[1]!)
    const chat = JSON.parse(onChat.text.split('\r\n\r\n')[1]!)
    assert.equal(messages.type, 'error')
    assert.equal(messages.error.type, 'invalid_request_error')
    assert.match(onMessages.text, new RegExp(`request-id: ${messages.request_id}`))
    assert.equal(chat.error.code, 'invalid_body')
    assert.equal(chat.error.message, messages.error.message)
  })
}
