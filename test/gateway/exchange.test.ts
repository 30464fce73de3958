import assert from 'node:assert/strict'
import test from 'node:test'
import { Outgoing } from '../../src/gateway/exchange.ts'
import { modelOf } from '../native/models.ts'
import { upstreamAt } from '../support/upstream.ts'

const upstream = upstreamAt('http://sim')
const target = (upstreamModel: string) => ({
  upstream,
  account: undefined,
  key: undefined,
  path: '/',
  model: modelOf('chat', { upstreamModel }),
  headers: [],
})

test('a target with another name for the model gets its own body; all other bytes stay the same', () => {
  const body = Buffer.from('{"x":1.0,"model":"up","n":"mod\\u0065l" }')
  const outgoing = new Outgoing(body, modelOf('chat'))
  assert.equal(outgoing.bodyFor(target('up')), body)
  assert.equal(
    outgoing.bodyFor(target('my "deployment"')).toString(),
    '{"x":1.0,"model":"my \\"deployment\\"","n":"mod\\u0065l" }',
  )
  assert.equal(outgoing.bodyFor(target('up')), body)
  outgoing.forget(false)
  assert.throws(() => outgoing.bodyFor(target('up')), /was released/)
})

test('a target with another name for the model gets no name if the upstreams take none', () => {
  const body = Buffer.from('{"messages":[]}')
  assert.equal(new Outgoing(body, modelOf('chat')).bodyFor(target('other')), body)
})
