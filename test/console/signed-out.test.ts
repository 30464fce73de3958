import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { until } from '../support/waiting.ts'

/*
 * The session and the loaded figures of the console, without a browser: the component renders no element, and the API is a
 * function. Test files are compiled without the DOM's types, which these modules bring along: they are imported by computed names.
 */

const [source, framework] = ['../../console/src', 'preact']
const { h, render } = await import(framework)
const { act } = await import(`${framework}/test-utils`)
const { useLive } = await import(`${source}/api/live.ts`)
const { useLoad } = await import(`${source}/api/load.ts`)
const { failingModels, unreachedServers } = await import(`${source}/api/ask.ts`)
const session = await import(`${source}/session.ts`)

type Answer = (path: string) => Response | Promise<Response>
let api: Answer = () => assert.fail('nothing is asked yet')

const kept = new Map<string, string>()
const localStorage = {
  getItem: (name: string) => kept.get(name) ?? null,
  setItem: (name: string, value: string) => kept.set(name, value),
  removeItem: (name: string) => kept.delete(name),
}
const { fetch } = globalThis
// Other files share the process, so the browser's globals are there only while these tests run.
before(() => {
  const standIn: typeof fetch = async (url) => api(String(url).replace(/^.*\/api\/v1/, ''))
  const timers = { setTimeout: () => 0, clearTimeout() {} }
  Object.assign(globalThis, { window: { localStorage, location: { hash: '' }, ...timers }, fetch: standIn })
})
after(() => {
  globalThis.fetch = fetch
  Reflect.deleteProperty(globalThis, 'window')
})

const refused = () =>
  new Response('{}', { status: 401, headers: { 'content-type': 'application/problem+json' } }) as Response
const answerAs =
  (name: string): Answer =>
  (path) => {
    if (path === '/me') return Response.json({ kind: 'owner', role: 'owner', name })
    return path === '/session' ? new Response(null, { status: 204 }) : Response.json({ of: name })
  }

/** Shows what is loaded of a path. @returns each distinct figure that was shown, and a function that leaves the page */
async function show(path: string) {
  const shown: unknown[] = []
  const { leave } = await mount(() => {
    const { data } = useLoad(path)
    if (data !== undefined && data !== shown.at(-1)) shown.push(data)
  })
  return { shown, leave }
}

/** Mounts a component that renders nothing. @param use calls the hooks of the component */
async function mount(use: () => void) {
  const place = {
    childNodes: [],
    firstChild: null,
    insertBefore() {},
    contains: () => false,
  }
  const Page = () => {
    use()
    return null
  }
  await act(() => render(h(Page, null), place))
  return { leave: (): Promise<void> => act(() => render(null, place)) }
}

const endings: [how: string, end: () => Promise<void>][] = [
  ['signs out', () => session.signOut()],
  ['has a session that ended', async () => session.signedOut()],
  [
    'is refused by the API',
    async () => {
      api = (path) => (path === '/session' ? new Response(null, { status: 204 }) : refused())
      const { leave } = await show('/keys')
      await until(() => session.me.peek() === null)
      await leave()
    },
  ],
  [
    'opens the console after the session ended',
    async () => {
      api = refused
      await session.lookWhoAsks()
    },
  ],
]

for (const [how, end] of endings)
  test(`the console shows the next user nothing of a user who ${how}`, async () => {
    api = answerAs('one')
    await session.signIn('a token')
    const first = await show('/accounts')
    await until(() => first.shown.length > 0)
    await first.leave()
    // As long as the user is signed in, the last answer is shown at once.
    api = () => new Promise(() => {})
    const again = await show('/accounts')
    assert.deepEqual(again.shown, [{ of: 'one' }])
    await again.leave()

    api = answerAs('one')
    await end()
    assert.equal(session.me.peek(), null)
    api = answerAs('other')
    await session.signIn('another token')
    const next = await show('/accounts')
    await until(() => next.shown.length > 0)
    assert.deepEqual(next.shown, [{ of: 'other' }])
    await next.leave()
    await session.signOut()
  })

test('the next user of a tab is not shown the status of the gateway that an operator has seen', async () => {
  api = (path) => {
    if (path === '/status') return Response.json({ failing: ['m'], needs: [{ severity: 'bad' }] })
    return path === '/me' ? Response.json({ kind: 'operator', name: 'ann' }) : answerAs('one')(path)
  }
  await session.signIn('a token')
  unreachedServers.value = 'other@host'
  assert.deepEqual(failingModels.peek(), ['m'])
  await session.signOut()
  api = answerAs('other')
  await session.signIn('a key')
  assert.deepEqual([session.status.peek(), failingModels.peek(), unreachedServers.peek()], [undefined, [], undefined])
  await session.signOut()
})

test('the next user of a tab is not shown an event that comes when an operator has just signed out', async () => {
  let tell = (_: { data: string }) => {}
  const stream = class {
    addEventListener(name: string, listen: typeof tell) {
      if (name === 'tick') tell = listen
    }
  }
  Object.assign(globalThis, { EventSource: stream })
  api = (path) => (path === '/me' ? Response.json({ kind: 'owner', name: 'ann' }) : answerAs('one')(path))
  await session.signIn('a token')
  const hear = () => {}
  const { leave } = await mount(() => useLive('tick', hear))
  const tick = { data: JSON.stringify({ failing: ['m'], unreached: ['other@host'] }) }
  tell(tick)
  assert.deepEqual([failingModels.peek(), unreachedServers.peek()], [['m'], 'other@host'])
  await session.signOut()
  await leave()
  tell(tick)
  assert.deepEqual([failingModels.peek(), unreachedServers.peek()], [[], undefined])
  Reflect.deleteProperty(globalThis, 'EventSource')
})

test('an answer that arrives after its user has signed out is not shown', async () => {
  api = answerAs('one')
  await session.signIn('a token')
  const late = Promise.withResolvers<Response>()
  api = () => late.promise
  const first = await show('/accounts')
  api = answerAs('one')
  await session.signOut()
  late.resolve(Response.json({ of: 'one' }))
  await act(() => late.promise.then(() => {}))
  await first.leave()
  api = answerAs('other')
  await session.signIn('another token')
  const next = await show('/accounts')
  await until(() => next.shown.length > 0)
  assert.deepEqual([first.shown, next.shown], [[], [{ of: 'other' }]])
  await next.leave()
})

for (const [how, answer] of [
  ['cannot be reached', () => Promise.reject(new TypeError('fetch failed'))],
  ['fails', () => new Response('', { status: 503 })],
] as const)
  test(`a user stays signed in if the gateway ${how} at the sign-out, and reads so`, async () => {
    api = answerAs('one')
    await session.signIn('a token')
    api = answer
    await assert.rejects(session.signOut(), /The gateway did not answer/)
    assert.equal(session.me.peek().name, 'one')
    api = refused
    await session.signOut()
    assert.equal(session.me.peek(), null)
  })
