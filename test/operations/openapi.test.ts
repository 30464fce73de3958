import assert from 'node:assert/strict'
import test from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { allOperations } from '../../src/operations/openapi.ts'
import { problems } from '../../src/operations/problem.ts'
import { startApi } from './api.ts'
import { document } from './contract.ts'

test('issue 13: the document is OpenAPI 3.1 for a public validator, and equals what the server sends', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document) as never)
  assert.deepEqual([valid, errors], [true, undefined])
  assert.equal(validator.version, '3.1')
  const { ask } = await startApi()
  const told = (await ask('GET', '/openapi.json')).body as unknown as typeof document
  assert.deepEqual(told.paths, document.paths)
})

test('issue 13: each yes or no in a query that the document has is read', async () => {
  const { ask } = await startApi()
  const asked: string[] = []
  for (const [path, methods] of Object.entries(document.paths)) {
    const { parameters = [] } = (methods['get'] ?? {}) as { parameters?: { name: string; schema: { type?: string } }[] }
    for (const { name } of parameters.filter(({ schema }) => schema.type === 'boolean')) {
      asked.push(name)
      for (const word of ['true', 'false'])
        assert.equal(
          (await ask('GET', `${path.replace(/^\/api\/v1/, '')}?${name}=${word}`)).status,
          200,
          `${path} ${name}`,
        )
      assert.equal((await ask('GET', `${path.replace(/^\/api\/v1/, '')}?${name}=yes`)).status, 400)
    }
  }
  assert.deepEqual(asked.sort(), ['ended', 'sessions'])
})

test('the document is made once for each choice of groups, however often and in whatever order they are requested', async () => {
  const { ask } = await startApi()
  const run = (groups?: string) => ask('GET', `/openapi.json${groups ? `?groups=${groups}` : ''}`)
  const whole = await run()
  assert.equal((await run()).text, whole.text)
  const two = await run('account,key')
  assert.notEqual(two.text, whole.text)
  assert.equal((await run('key,account,key')).text, two.text)
  const operation = allOperations.find(({ id }) => id === 'openapi')!
  const asked = (groups?: string[]) =>
    operation.run({ version: '1' } as never, { groups } as never) as Promise<{ body: object }>
  assert.equal((await asked()).body, (await asked()).body)
  assert.equal((await asked(['account', 'key'])).body, (await asked(['key', 'account', 'key'])).body)
  assert.notEqual((await asked(['account'])).body, (await asked(['key'])).body)
})

test('issue 13: names of operations are unique, each has a description, and each problem is declared by an operation', () => {
  const ids = allOperations.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length)
  for (const { id, text } of allOperations) assert.match(text, /^\p{Ll}.{8,}$/u, id)
  const told = new Set(
    Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).flatMap(({ responses }) =>
        Object.values(responses as Record<string, { description?: string }>).flatMap(({ description = '' }) =>
          description.split(', '),
        ),
      ),
    ),
  )
  const untold = Object.keys(problems).filter((name) => !told.has(name))
  // It has no operation: the path is right and the method is not.
  assert.deepEqual(untold, ['method_not_allowed'])
})
