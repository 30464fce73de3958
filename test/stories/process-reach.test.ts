import assert from 'node:assert/strict'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { stringify } from 'yaml'
import { createAuthority } from '../support/certificates.ts'
import { raw } from '../support/raw.ts'
import { model, newFolder, serve } from '../support/serve.ts'

test('N-F3 N-F4 U14 the program speaks TLS, says whom it asks through which proxy, and a SIGHUP waits for a command, renews the pair, and says what it leaves', async () => {
  const folder = newFolder()
  const { issue } = createAuthority()
  const path = join(folder, 'triwire.yaml')
  const write = (marker: string, listen: string) => {
    const { certFile, keyFile } = issue('gateway.example')
    copyFileSync(certFile, join(folder, 'cert.pem'))
    copyFileSync(keyFile, join(folder, 'key.pem'))
    const far = {
      base_url: 'https://far.example',
      accounts: [{ name: 'a', key_command: ['/bin/sh', '-c', `echo run >> ${marker}; echo token-of-command`] }],
    }
    const settings = {
      listen,
      admin_listen: '127.0.0.1:0',
      tls: { cert: 'cert.pem', key: 'key.pem' },
      upstreams: { far },
    }
    const models = `catalog:\n  pinned: 2026-11-01\n  models:\n${model('m', 'far')}\n`
    writeFileSync(path, `store: ./triwire.db\n${stringify(settings)}${models}`, { mode: 0o600 })
  }
  write('one', '127.0.0.1:0')
  const env = { HTTPS_PROXY: 'http://ann:hidden-word@proxy.example:3128', NO_PROXY: '' }
  const running = serve(['--config', path], folder, { env })
  const url = (await running.url()).replace('http://', 'https://')
  await running.saw('"upstream_proxy","upstream":"far","proxy":"http://proxy.example:3128","source":"HTTPS_PROXY"')
  const list = await raw(url, 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n', { answers: 1 })
  assert.match(list.answers[0]!.body, /"id":"m"/)
  assert.match(running.stdout(), new RegExp(`triwire listens on ${url} `))
  write('two', '127.0.0.1:1')
  running.child.kill('SIGHUP')
  await running.saw('"restart_needed","keys":["listen"]')
  await running.saw('"config_reloaded"')
  running.child.kill('SIGTERM')
  await running.exited
  assert.doesNotMatch(running.stderr() + running.stdout(), /hidden-word|token-of-command|key_failed/)
})
