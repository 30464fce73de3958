import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { until } from '../support/waiting.ts'

/*
 * The playground of the console, without a browser: the component renders no element, and the API is a function. Test files are
 * compiled without the DOM's types, which these modules bring along: they are imported by computed names.
 */

const [source, framework] = ['../../console/src', 'preact']
const { h, render } = await import(framework)
const { act } = await import(`${framework}/test-utils`)
const { usePlay } = await import(`${source}/pages/play.ts`)

const { fetch } = globalThis
before(() => {
  // Other files share the process, so the browser's globals are there only while these tests run.
  Object.assign(globalThis, { window: {}, fetch: async () => answered.promise })
})
after(() => {
  globalThis.fetch = fetch
  Reflect.deleteProperty(globalThis, 'window')
})

let answered = Promise.withResolvers<Response>()

/** An event stream that ends with an error after its first event, as if its connection was lost. */
function brokenStream(): Response {
  const event = 'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
  let isSent = false
  const body = new ReadableStream({
    pull(controller) {
      if (isSent) controller.error(new TypeError('network error'))
      else controller.enqueue(new TextEncoder().encode(event))
      isSent = true
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

for (const [how, state] of [
  ['whose connection was lost', 'broken'],
  ['that somebody has stopped', 'stopped'],
] as const)
  test(`the playground shows an answer ${how} as ${state}`, async () => {
    answered = Promise.withResolvers()
    let shown: { played?: { state: string; parts: { text: string } }; play(...of: unknown[]): void; stop(): void }
    const Page = () => {
      shown = usePlay()
      return null
    }
    const place = { childNodes: [], firstChild: null, insertBefore() {}, contains: () => false }
    await act(() => render(h(Page, null), place))
    await act(() => shown.play('self', 'chat', '{}'))
    if (state === 'stopped') {
      shown!.stop()
      answered.reject(new DOMException('stopped', 'AbortError'))
    } else answered.resolve(brokenStream())
    await until(() => shown.played?.state !== 'running')
    assert.equal(shown!.played?.state, state)
    await act(() => render(null, place))
  })
