import assert from 'node:assert/strict'
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import test, { after, before } from 'node:test'
import { brotliDecompressSync } from 'node:zlib'
import { openConsole } from '../../src/admin/console-files.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway()
})
after(() => gateway.close())

type Answer = { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }

/** Of the admin listener, as it is sent: no client changes the path, or a header. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  const { hostname, port } = new URL(gateway.adminUrl)
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, method, headers }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(pieces) }),
      )
    })
    asked.on('error', reject)
    asked.end()
  })
}

test('the console is one page under every path, with a policy that lets it load, run and query only our own files', async () => {
  for (const [path, up] of [
    ['/console/', ''],
    ['/console/requests?outcome=ok', ''],
    ['/console/accounts/acct_1', '../'],
    ['/console/models/a%2Fb', '../'],
  ] as const) {
    const { status, headers, body } = await ask(path)
    assert.equal(status, 200, path)
    assert.match(String(body), new RegExp(`<script type="module" src="${up}assets/console\\.\\w+\\.js">`))
    assert.doesNotMatch(String(body), /https?:|<style|style=|<script>| on\w+=/)
    assert.equal(headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['referrer-policy'], 'no-referrer')
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin')
    assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
    assert.equal(
      headers['content-security-policy'],
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
        "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    )
  }
})

test('console files are cacheable for ever, sent compressed to clients that accept it, and not sent again to those that have them', async () => {
  const page = String((await ask('/console/')).body)
  const names = [...page.matchAll(/assets\/([\w.]+)/g)].map(([, name]) => name!)
  assert.deepEqual(
    names.map((name) => name.split('.').at(-1)),
    ['svg', 'css', 'js'],
  )
  let bytes = 0
  for (const name of names) {
    const path = `/console/assets/${name}`
    const plain = await ask(path)
    const small = await ask(path, { 'accept-encoding': 'gzip, deflate, br, zstd' })
    const refused = await ask(path, { 'accept-encoding': 'gzip, br;q=0' })
    const again = await ask(path, { 'if-none-match': String(plain.headers['etag']) })
    assert.deepEqual([plain.status, small.status, refused.status, again.status], [200, 200, 200, 304])
    assert.equal(plain.headers['content-encoding'], undefined)
    assert.equal(refused.headers['content-encoding'], undefined)
    assert.equal(small.headers['content-encoding'], 'br')
    assert.deepEqual(brotliDecompressSync(small.body), plain.body)
    assert.equal(again.body.length, 0)
    for (const { headers } of [plain, small, again]) {
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
      assert.equal(headers['vary'], 'accept-encoding')
    }
    assert.equal((await ask(path, {}, 'HEAD')).body.length, 0)
    bytes += small.body.length
  }
  assert.ok(bytes < 200_000, `the first load is ${bytes} bytes`)
})

test('other host names, methods and files of the console are refused', async () => {
  const { port } = new URL(gateway.adminUrl)
  assert.equal((await ask('/console/', { host: 'evil.example' })).status, 421)
  assert.equal((await ask('/console/', { host: `localhost:${port}` })).status, 200)
  for (const method of ['POST', 'PUT', 'DELETE']) {
    const { status, headers } = await ask('/console/', {}, method)
    assert.deepEqual([status, headers['allow']], [405, 'GET, HEAD'])
  }
  for (const path of [
    ...['/console/assets/', '/console/assets/manifest.json', '/console/assets/../manifest.json', '/console/a/b/c'],
    ...['/console/assets/%2e%2e%2fpackage.json', '/console/assets/console.js.br', '/console/assets/constructor'],
  ])
    assert.equal((await ask(path)).status, 404, path)
  const moved = await ask('/console?range=7d')
  assert.deepEqual([moved.status, moved.headers['location']], [307, 'console/?range=7d'])
  assert.equal((await ask('/consolex')).status, 404)
})

test('a server without a built console says how to get one; a rebuilt console is served at once', async () => {
  const folder = testFolder('console')
  const open = openConsole(folder)
  assert.match(String(await open()), /npm run console/)
  const write = (script: string, seconds: number) => {
    mkdirSync(join(folder, 'dist'), { recursive: true })
    writeFileSync(join(folder, 'dist/manifest.json'), JSON.stringify({ script, style: 's', icon: 'i', files: [] }))
    utimesSync(join(folder, 'dist/manifest.json'), seconds, seconds)
  }
  for (const [at, script] of ['console.one.js', 'console.two.js'].entries()) {
    write(script, 1_700_000_000 + at)
    const files = await open()
    assert.ok(typeof files === 'object' && files.page('', 'api/v1').includes(script))
  }
})
