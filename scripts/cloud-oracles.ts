import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EventFrames } from '../src/clouds/event-frames.ts'
import { mintBearer, signRequest } from '../src/clouds/sigv4.ts'

// node bin/node.mjs scripts/cloud-oracles.ts [count] [part]
//
// Compares our code for clouds with implementations that share no code with it, over random inputs from a seed. Signatures and minted
// keys of AWS are those of botocore and of AWS's generator. Frames are written by the codec of AWS's SDK and read by botocore as well.
// Takes Python with pip, and npm; or a folder of installed packages in ORACLES.

const count = Number(process.argv[2] ?? 10_000)
const part = process.argv[3]
const packages = ['botocore==1.44.8', 'aws-bedrock-token-generator==1.1.0']
const folder = process.env['ORACLES'] ?? mkdtempSync(join(tmpdir(), 'triwire-oracle-'))

const parts: Record<string, () => void | Promise<void>> = { signatures: compareSignatures, frames: compareFrames }

try {
  if (process.env['ORACLES'] === undefined) {
    const { status } = spawnSync('pip', ['install', '--quiet', '--target', folder, ...packages], { stdio: 'inherit' })
    assert.equal(status, 0, 'pip has installed the oracles')
    const npm = [
      'install',
      '--silent',
      '--no-audit',
      '--no-fund',
      '--prefix',
      folder,
      '@smithy/eventstream-codec@4.5.2',
    ]
    assert.equal(spawnSync('npm', npm, { stdio: 'inherit' }).status, 0, 'npm has installed the oracles')
  }
  for (const [name, compare] of Object.entries(parts)) if (part === undefined || part === name) await compare()
} finally {
  if (process.env['ORACLES'] === undefined) rmSync(folder, { recursive: true, force: true })
}

type Signed = {
  kind: 'signature' | 'bearer'
  host: string
  path: string
  headers: Record<string, string>
  body: string
  id: string
  secret: string
  token: string | null
  region: string
  service: string
  ms: number
  expected: string
}

function compareSignatures(): void {
  const cases = run('signatures.py', [`${count}`]) as Signed[]
  for (const one of cases) {
    const { host, path, region, service, ms, expected } = one
    const credentials = { id: one.id, secret: one.secret, ...(one.token !== null && { token: one.token }) }
    if (one.kind === 'bearer') {
      assert.equal(mintBearer(credentials, region, ms), expected)
      continue
    }
    const request = { method: 'POST', host, path, headers: Object.entries(one.headers).flat() }
    const signed = signRequest(
      { ...request, body: Buffer.from(one.body, 'base64') },
      credentials,
      { region, service },
      ms,
    )
    assert.equal(new Map(signed).get('authorization'), expected, path)
  }
  console.log(`${cases.length} signatures and minted keys: no difference`)
}

/** Frames of chunks and exceptions, cut anywhere; then single flipped bits. */
async function compareFrames(): Promise<void> {
  const { EventStreamCodec } = createRequire(join(folder, 'x'))('@smithy/eventstream-codec')
  const codec = new EventStreamCodec(
    (bytes: Uint8Array) => Buffer.from(bytes).toString(),
    (text: string) => Buffer.from(text),
  )
  const random = createRandom(5)
  const frames: Buffer[] = []
  const expected: string[] = []
  for (let i = 0; i < 2 * count; i++) {
    const kind = random(20) === 0 ? 'exception' : 'event'
    const event = JSON.stringify({ type: 'content_block_delta', delta: { text: 'é✓'.repeat(random(60)) } })
    const payload = JSON.stringify(
      kind === 'event'
        ? { bytes: Buffer.from(event).toString('base64'), p: 'p'.repeat(random(10)) }
        : { message: event },
    )
    const headers = { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': kind }
    const typed = Object.entries(headers).map(([name, value]) => [name, { type: 'string', value }])
    frames.push(Buffer.from(codec.encode({ headers: Object.fromEntries(typed), body: Buffer.from(payload) })))
    expected.push(kind + payload)
  }
  const bytes = Buffer.concat(frames)
  const decoder = new EventFrames()
  const read: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random(1_500)
    for (const { headers, payload } of decoder.push(bytes.subarray(at, end)))
      read.push(`${headers.get(':message-type')}${payload}`)
    at = end
  }
  assert.deepEqual(read, expected)
  assert.deepEqual(run('frames.py', [], bytes), expected)
  for (let i = 0; i < count / 5; i++) {
    const frame = Buffer.from(frames[i]!)
    frame[random(frame.length)]! ^= 1 << random(8)
    let delivered = 0
    try {
      for (const _ of new EventFrames().push(frame)) delivered++
    } catch {}
    assert.equal(delivered, 0, 'a frame with a flipped bit')
  }
  console.log(`${frames.length} frames: no difference to the codec and to botocore; no flipped bit was delivered`)
}

/** Whole numbers below a bound, from a seed. */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >>> 8) % below
  }
}

/** Runs one of the programs in `scripts/clouds`. @returns the values of its lines */
function run(program: string, args: readonly string[], input: string | Buffer = ''): unknown[] {
  const options = { input, env: { ...process.env, PYTHONPATH: folder }, maxBuffer: 2 ** 30 }
  const { stdout, stderr, status } = spawnSync(
    'python3',
    [join(import.meta.dirname, 'clouds', program), ...args],
    options,
  )
  assert.equal(status, 0, `${stderr}`)
  return `${stdout}`
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}
