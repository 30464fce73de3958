import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import type { Books } from '../../src/accounts/books.ts'
import { openBooks } from '../../src/store/open-books.ts'
import { anyPorts, newFolder, serve } from '../support/serve.ts'

type Asked = { status: number; body: Record<string, string> }

async function post(url: string, path: string, form: Record<string, string>): Promise<Asked> {
  const answer = await fetch(url + path, { method: 'POST', body: new URLSearchParams(form) })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

const deviceGrant = (code: string) => ({
  grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
  device_code: code,
})
const refreshGrant = (token: string) => ({ grant_type: 'refresh_token', refresh_token: token })

async function withBooks<T>(folder: string, work: (books: Books) => Promise<T>): Promise<T> {
  const path = join(folder, 'data', 'triwire.db')
  const { books, close } = await openBooks({ engine: 'sqlite', path, shown: path } as never)
  try {
    return await work(books)
  } finally {
    await close()
  }
}

test('Y20 kill -9 between approval and poll, or refresh and answer, forces no new sign-in and leaves no token in clear', async () => {
  const folder = newFolder()
  const rules = [{ groups: ['dev'], account: 'demo' }]
  const config = { sign_in: { issuer: 'http://127.0.0.1:9', client_id: 'triwire', rules } }
  writeFileSync(join(folder, 'triwire.yaml'), JSON.stringify(config), { mode: 0o600 })
  const logs: string[] = []
  let running = serve(anyPorts, folder)
  let url = await running.url()
  const killAndStart = async () => {
    running.child.kill('SIGKILL')
    await running.exited
    logs.push(running.stdout().replaceAll(/sk-tri-\w+/g, ''), running.stderr())
    running = serve(anyPorts, folder)
    url = await running.url()
  }
  const { body: begun } = await post(url, '/oauth/device_authorization', { surface: 'claude_code' })
  await withBooks(folder, async (books) => {
    await books.createAccount('acme', 10n ** 12n)
    const { id } = (await books.findGrant(begun['user_code']!))!
    await books.decideGrant(id, { issuer: 'i', subject: 's', account: 'acme', role: 'member' })
  })
  await killAndStart()
  const first = await post(url, '/oauth/token', deviceGrant(begun['device_code']!))
  assert.equal(first.status, 200, JSON.stringify(first.body))
  const seen = [begun['device_code']!, begun['user_code']!, first.body['access_token']!, first.body['refresh_token']!]
  let token = first.body['refresh_token']!
  for (let n = 0; n < 3; n++) {
    // The server may have moved the session on, or not: the client has no answer.
    const asked = post(url, '/oauth/token', refreshGrant(token)).catch(() => undefined)
    if (n > 0) await Promise.race([asked, new Promise((resolve) => setImmediate(resolve))])
    await killAndStart()
    await asked
    const again = await post(url, '/oauth/token', refreshGrant(token))
    assert.equal(again.status, 200, JSON.stringify(again.body))
    token = again.body['refresh_token']!
    seen.push(token, again.body['access_token']!)
  }
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${seen.at(-1)}` },
    body: '{"model":"sim-messages","max_tokens":5,"messages":[{"role":"user","content":"canary"}]}',
  })
  assert.equal(answer.status, 200)
  await answer.text()
  await killAndStart()
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name)).toString('latin1'))
  assert.ok(texts.length >= 2)
  // The secret that both tokens of the session have.
  seen.push(token.slice(7, 29))
  for (const secret of seen)
    assert.equal(
      [...texts, ...logs].some((text) => text.includes(secret)),
      false,
      'a token is in a file or the log',
    )
})
