import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { connect } from 'node:tls'
import { loadText } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { runWarm } from '../cli/run.ts'
import { createAuthority } from '../support/certificates.ts'
import { testFolder } from '../support/folder.ts'
import { raw } from '../support/raw.ts'
import { startApi } from './api.ts'

/* The admin listener over TLS (X9, operate §6). */

const health = join(import.meta.dirname, '../../image/health.mjs')
const authority = createAuthority()
const [first, second] = [authority.issue('admin.example'), authority.issue('admin.example')]
const folder = testFolder('admin-pair')
const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
const put = ({ certFile, keyFile }: typeof first) => {
  copyFileSync(certFile, tls.cert)
  copyFileSync(keyFile, tls.key)
}
put(first)

test('X9 over TLS the admin listener answers under loopback names and those of its certificate, with cookies for TLS only', async () => {
  const { viewer, gateway } = await startApi({ config: { admin: { tls } } })
  const url = gateway.adminUrl.replace('http:', 'https:')
  const { port } = new URL(url)
  const ask = async (host: string, ...lines: string[]) => {
    const head = [`GET /api/v1/me HTTP/1.1`, `Host: ${host}`, ...lines].join('\r\n')
    return (await raw(url, `${head}\r\n\r\n`, { answers: 1 })).answers[0]!.status
  }
  const bearer = `Authorization: Bearer ${viewer}`
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `admin.example:${port}`])
    assert.equal(await ask(host, bearer), 200, host)
  for (const host of ['admin.example', `evil.example:${port}`, `evil.admin.example:${port}`, `10.0.0.1:${port}`])
    assert.equal(await ask(host, bearer), 421, host)
  const body = JSON.stringify({ token: viewer })
  const head = ['POST /api/v1/session HTTP/1.1', `Host: admin.example:${port}`, 'Content-Type: application/json']
  const signIn = await raw(url, `${[...head, `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`, {
    answers: 1,
  })
  const cookie = signIn.answers[0]!.headers.get('set-cookie')!
  assert.match(cookie, /^__Host-triwire=tri-op-\w+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+; Secure$/)
  assert.equal(await ask(`admin.example:${port}`, `Cookie: ${cookie.split(';')[0]}`), 200)
  // In clear there is nothing.
  const plain = await raw(gateway.adminUrl, `GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n`)
  assert.deepEqual([plain.answers, plain.isClosed], [[], true])
  const printed = await runWarm(['upstreams', '--config', gateway.configPath, '--admin-listen', `127.0.0.1:${port}`])
  assert.equal(printed.code, 0, printed.stderr)
})

test('X9 the check of the image’s health reaches the admin listener with and without TLS, and fails if nobody listens', async () => {
  const check = (url: string, ...path: string[]) =>
    new Promise<number | null>((resolve) => {
      const env = { ...process.env, TRIWIRE_ADMIN_LISTEN: new URL(url).host }
      spawn(process.execPath, [health, ...path], { env, stdio: 'ignore' }).on('close', resolve)
    })
  const { gateway: secured } = await startApi({ config: { admin: { tls } } })
  const { gateway: plain } = await startApi()
  for (const { adminUrl } of [secured, plain])
    assert.deepEqual([await check(adminUrl), await check(adminUrl, 'readyz'), await check(adminUrl, 'no')], [0, 0, 1])
  const { adminUrl } = secured
  await secured.close()
  assert.equal(await check(adminUrl), 1)
})

test('X9 U14 a reload replaces the certificate that clients see', async () => {
  const { gateway } = await startApi({ config: { admin: { tls } } })
  const port = Number(new URL(gateway.adminUrl).port)
  const shown = () =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ port, ca: authority.ca, servername: 'admin.example' }, () => {
        resolve(socket.getPeerCertificate().serialNumber)
        socket.destroy()
      })
      socket.on('error', reject)
    })
  const before = await shown()
  put(second)
  gateway.reload({})
  assert.notEqual(await shown(), before)
  put(first)
})

test('X9 U14 a command whose certificate is not the server’s says so, and not that no server answers', async () => {
  const { gateway } = await startApi({ config: { admin: { tls } } })
  const { port } = new URL(gateway.adminUrl)
  const fail = async () => {
    const { code, stderr } = await runWarm(
      ['upstreams', '--config', gateway.configPath, '--admin-listen', `127.0.0.1:${port}`], //
    )
    assert.equal(code, 1)
    return stderr
  }
  put(second)
  assert.match(
    await fail(),
    /^triwire: the server on https:\S+ shows another certificate than \S+cert\.pem, or one that has expired \([A-Z_]+\): if the file was renewed, reload the server \(SIGHUP\)$/m,
  )
  put(authority.issue('admin.example', -1))
  gateway.reload({})
  assert.match(await fail(), /or one that has expired \(CERT_HAS_EXPIRED\)/)
  rmSync(tls.cert)
  assert.match(await fail(), /^triwire: ENOENT: no such file or directory, open '\S+cert\.pem'$/m)
  put(first)
})

test('X9 U14 after a reload the admin listener answers under the names of the new certificate', async () => {
  const { viewer, gateway } = await startApi({ config: { admin: { tls } } })
  const url = gateway.adminUrl.replace('http:', 'https:')
  const ask = async (name: string) => {
    const host = `${name}:${new URL(url).port}`
    const head = ['GET /api/v1/me HTTP/1.1', `Host: ${host}`, `Authorization: Bearer ${viewer}`].join('\r\n')
    return (await raw(url, `${head}\r\n\r\n`, { answers: 1 })).answers[0]!.status
  }
  assert.deepEqual([await ask('admin.example'), await ask('other.example')], [200, 421])
  put(authority.issue('other.example'))
  gateway.reload({})
  assert.deepEqual([await ask('admin.example'), await ask('other.example')], [421, 200])
  // Without TLS it wants a restart, and goes on with what it has.
  gateway.reload({ admin: {} })
  assert.equal(await ask('other.example'), 200)
  put(first)
})

test('X9 NEW-7 an address off loopback is accepted with TLS and without, and a pair that does not match is refused', () => {
  const load = (text: string, flags = {}) => loadText(text, 'a file', flags, {})
  const refused = (text: string, flags = {}) => {
    try {
      load(text, flags)
    } catch (error) {
      assert.ok(error instanceof ConfigError)
      return error.message
    }
    return 'taken'
  }
  for (const address of ['0.0.0.0:8081', '10.1.2.3:8081', '[::]:8081', 'admin.example:8081'])
    assert.equal(refused(`admin_listen: "${address}"`), 'taken')
  const told = load(`admin_listen: 0.0.0.0:8443\nadmin: { tls: { cert: ${tls.cert}, key: ${tls.key} } }`)
  assert.match(told.adminTls!.cert, /BEGIN CERTIFICATE/)
  assert.match(
    refused(`admin: { tls: { cert: ${tls.cert}, key: ${second.keyFile} } }`),
    /admin\.tls\.key is not the key of the first certificate in `admin\.tls\.cert`/,
  )
  assert.match(
    refused('admin: { tls: { cert: /nowhere, key: /nowhere } }'),
    /admin\.tls\.cert names a file that cannot be read/,
  )
})

test('operate §3 a public address may have a path, which a proxy keeps or removes', async () => {
  for (const wrong of ['http://x', 'https://a:b@x', 'https://x/?a', 'https://x/a b', 'https://x/../y', 'https://x//y'])
    assert.throws(() => loadText(`admin: { public_url: "${wrong}" }`, 'a file', {}, {}), /must be https/, wrong)
  const { viewer, gateway } = await startApi({ config: { admin: { public_url: 'https://example.com/tri.wire/' } } })
  const status = async (path: string) => {
    const head = [`GET ${path} HTTP/1.1`, 'Host: example.com', `Authorization: Bearer ${viewer}`].join('\r\n')
    return (await raw(gateway.adminUrl, `${head}\r\n\r\n`, { answers: 1 })).answers[0]!.status
  }
  for (const path of ['/tri.wire/api/v1/me', '/api/v1/me', '/tri.wire/healthz', '/healthz'])
    assert.equal(await status(path), 200, path)
  for (const path of ['/tri.wirex/api/v1/me', '/other/api/v1/me', '/tri.wire/tri.wire/api/v1/me', '/tri.wire'])
    assert.equal(await status(path), 404, path)
})

test('X9 admin.replica_url is the https address of a TLS listener, which other servers reach from other machines', () => {
  const load = (admin: object) => loadText(JSON.stringify({ admin }), 'a file', {}, {})
  for (const wrong of ['http://gateway-1.internal:8081', 'gateway-1.internal:8081', 'https://user@gateway-1.internal'])
    assert.throws(() => load({ tls, replica_url: wrong }), /must be https/, wrong)
  assert.throws(() => load({ replica_url: 'https://gateway-1.internal:8081' }), /admin\.replica_url needs admin\.tls/)
  const { adminReplicaUrl } = load({ tls, replica_url: 'https://gateway-1.internal:8081/triwire/' })
  assert.equal(adminReplicaUrl, 'https://gateway-1.internal:8081/triwire')
  assert.equal(load({ tls }).adminReplicaUrl, undefined)
})
