import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import { makeImage, readContainerfile, writeLayout } from '../../scripts/release/oci.ts'
import { pushImage } from '../../scripts/release/push.ts'
import { startRegistry } from '../../scripts/release/registry.ts'
import { writeTar } from '../../scripts/release/tar.ts'
import { sha256Hex } from '../../src/ids.ts'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'

/* The image that a release writes without a builder: the same files are the same bytes, and a registry takes it. */

const containerfile = readFileSync(join(import.meta.dirname, '../../image/Containerfile'), 'utf8')
const long = `app/node_modules/${'a-long-folder/'.repeat(8)}${'n'.repeat(80)}.js`

/** @param hours the age of the files @param umask what the machine takes away */
function files(name: string, hours: number, mode: number): string {
  const root = testFolder(name)
  for (const path of ['usr/bin', 'tmp', long.replace(/\/[^/]*$/, '')]) mkdirSync(join(root, path), { recursive: true })
  chmodSync(join(root, 'tmp'), 0o1777)
  writeFileSync(join(root, 'usr/bin/node'), 'a program')
  chmodSync(join(root, 'usr/bin/node'), 0o700)
  writeFileSync(join(root, long), 'export {}')
  chmodSync(join(root, long), mode)
  symlinkSync('usr/bin', join(root, 'bin'))
  utimesSync(join(root, long), 1e9 + hours * 3_600, 1e9 + hours * 3_600)
  return root
}

const data = [{ path: 'data', owner: 65_532, mode: 0o700 }]

test('issue 50: the same files make the same image, whatever their times, their folder and the umask', () => {
  const one = makeImage(files('one', 1, 0o644), data, containerfile)
  const other = makeImage(files('another folder', 999, 0o600), data, containerfile)
  assert.equal(one.digest, other.digest)
  const changed = files('changed', 1, 0o644)
  writeFileSync(join(changed, 'usr/bin/node'), 'b program')
  assert.notEqual(makeImage(changed, data, containerfile).digest, one.digest)
})

test('issue 50: tar reads the archive with names, modes, owners, links and contents', () => {
  const root = files('archive', 1, 0o644)
  const image = makeImage(root, data, containerfile)
  const layer = JSON.parse(image.manifest.toString()).layers[0].digest
  const tar = gunzipSync(image.blobs.get(layer)!)
  const listed = spawnSync('tar', ['--numeric-owner', '-tvf', '-'], {
    input: tar,
    encoding: 'utf8',
    env: { TZ: 'UTC', PATH: process.env['PATH'] },
  })
  assert.equal(listed.status, 0, listed.stderr)
  const rows = listed.stdout
    .trim()
    .split('\n')
    .map((line) => line.replace(/ +/g, ' '))
  assert.ok(rows.every((row) => row.includes(' 1970-01-01 00:00 ')))
  const has = (text: string) =>
    assert.ok(
      rows.some((row) => row.startsWith(text.split(' … ')[0]!) && row.endsWith(text.split(' … ')[1]!)),
      `${text} in ${rows.join('\n')}`,
    )
  has('drwx------ 65532/65532 0 … data/')
  has('drwxrwxrwt 0/0 0 … tmp/')
  has('-rwxr-xr-x 0/0 9 … usr/bin/node')
  has(`-rw-r--r-- 0/0 9 … ${long}`)
  has('lrwxrwxrwx 0/0 0 … bin -> usr/bin')
  assert.throws(() => writeTar([{ path: 'n'.repeat(300), mode: 0o644, data: Buffer.alloc(0) }]), /too long/)
})

test('issue 50: the settings of the image are those of the Containerfile, and a RUN instruction is refused', () => {
  const { Env, Healthcheck, ...rest } = readContainerfile(containerfile)
  assert.deepEqual(rest, {
    User: '65532:65532',
    WorkingDir: '/data',
    ExposedPorts: { '8080/tcp': {} },
    Volumes: { '/data': {} },
    StopSignal: 'SIGTERM',
    Entrypoint: ['/usr/bin/node', '--disable-sigusr1', '/app/node_modules/triwire/bin/triwire.mjs'],
    Cmd: ['serve'],
  })
  assert.ok((Env as string[]).includes('MALLOC_ARENA_MAX=2') && (Env as string[]).length === 6)
  assert.deepEqual(Healthcheck, {
    Test: ['CMD', '/usr/bin/node', '/app/health.mjs'],
    Interval: 10e9,
    Timeout: 3e9,
    StartPeriod: 20e9,
  })
  assert.throws(() => readContainerfile('FROM scratch\nRUN apt-get update\n'), /RUN is not known here/)
})

test('issue 50: a push sends missing parts, once, and the registry has the digest; the layout has the same', async () => {
  const registry = await startRegistry()
  atEnd(registry.close)
  const image = makeImage(files('pushed', 1, 0o644), data, containerfile)
  const repository = `${registry.url}/some/triwire`
  assert.equal(await pushImage(repository, image, '9.9.9'), 2)
  assert.equal(await pushImage(repository, image, 'latest'), 0)
  const pulled = await fetch(`${registry.url}/v2/some/triwire/manifests/${image.digest}`)
  assert.equal(`sha256:${sha256Hex(Buffer.from(await pulled.arrayBuffer()))}`, image.digest)
  const layout = testFolder('layout')
  writeLayout(layout, image, '9.9.9')
  const index = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'))
  assert.equal(index.manifests[0].digest, image.digest)
  const { config, layers } = JSON.parse(image.manifest.toString())
  for (const { digest, size } of [index.manifests[0], config, ...layers]) {
    const blob = readFileSync(join(layout, 'blobs', digest.replace(':', '/')))
    assert.deepEqual([`sha256:${sha256Hex(blob)}`, blob.length], [digest, size])
  }
})

test('issue 50: a registry that refuses a blob ends the push with the status and the reason', async () => {
  const registry = await startRegistry()
  atEnd(registry.close)
  const image = makeImage(files('refused', 1, 0o644), data, containerfile)
  const broken = { ...image, blobs: new Map([['sha256:0', Buffer.from('x')]]) }
  await assert.rejects(pushImage(`${registry.url}/triwire`, broken, 'x'), /PUT .* was answered 400: DIGEST_INVALID/)
  await assert.rejects(
    pushImage(`${registry.url}/triwire`, { ...image, blobs: new Map() }, 'x'),
    /400: MANIFEST_BLOB_UNKNOWN/,
  )
})
