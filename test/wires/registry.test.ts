import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import test from 'node:test'
import { type ClientWire, clientWireNames, modelWireNames } from '../../src/catalog/wire-names.ts'
import { clientWires, wires } from '../../src/wires/wires.ts'

const src = new URL('../../src/', import.meta.url).pathname
const files = globSync('**/*.ts', { cwd: src })
  .map((file) => file.replaceAll('\\', '/'))
  .sort()
const textOf = (file: string) => readFileSync(posix.join(src, file), 'utf8')

/** Where a wire is called by its name outside its own folder, and why that is not the registry's business. */
const allowed: Record<string, string> = {
  'catalog/built-in-scripts.ts': 'which wire each built-in model speaks',
  'catalog/wire-names.ts': 'the one list of names',
  'cli/doctor/client-wire.ts': 'judges errors as a client of each wire reads them',
  'cli/doctor/plan-probes.ts': 'asks the gateway as a client does, which has to speak some wire',
  'cli/doctor/run-probe.ts': 'the same',
  'cli/import/litellm-figures.ts': 'no wire: the mode in LiteLLM’s list of prices',
  'cli/import/litellm-fates.ts': 'no wire: a section of LiteLLM’s file',
  'cli/import/litellm-places.ts': 'which wire each provider of LiteLLM is asked in',
  'live/ask-upstreams.ts': 'asks as a client does, which has to speak some wire',
  'operations/openapi.ts': 'no wire: what OpenAPI calls the answers of an operation',
  'sign-in/agent-paths.ts': 'paths of one agent, which speaks one wire',
  'store/demo-life.ts': 'which wire each model of the demo speaks',
  'telemetry/otlp/conventions.ts': 'no wire: what OpenTelemetry calls the operation',
  'wires/chat/fields.ts': 'what becomes of its fields on each other wire',
  'wires/messages/fields.ts': 'what becomes of its fields on each other wire',
  'wires/requests/adapt-bytes.ts': 'no wire: the field of a conversation',
  'wires/responses/fields.ts': 'what becomes of its fields on each other wire',
}

test('N1 the name of a wire occurs only in its folder and in a few listed files', () => {
  const found = files.filter((file) => clientWireNames.some((wire) => !isOwn(file, wire) && names(file, wire)))
  assert.deepEqual(found, Object.keys(allowed).sort())
})

/** Its own folder; and the simulator, which is an upstream of our own and shares no code with the wires. */
function isOwn(file: string, wire: ClientWire): boolean {
  // An agent or SDK speaks the wires it speaks.
  if (file.startsWith('programs/known/')) return true
  if (file.startsWith('simulator/') || file.startsWith(`wires/${wire}/`)) return true
  // One wire's name is also what another calls its conversation.
  return clientWireNames.some(
    (other) => file.startsWith(`wires/${other}/`) && wires[other].client.request.conversation.field === wire,
  )
}

function names(file: string, wire: ClientWire): boolean {
  const code = textOf(file).replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm, '')
  return new RegExp(`['"\`]${wire}['"\`]|\\bwires\\.${wire}\\b`).test(code)
}

test('N1 the registry has every wire under its name, and no two at one path', () => {
  assert.deepEqual(Object.keys(wires).sort(), [...modelWireNames].sort())
  for (const wire of modelWireNames) assert.equal(wires[wire].name, wire)
  assert.deepEqual(clientWires.map(({ name }) => name).sort(), [...clientWireNames].sort())
  const paths = clientWires.flatMap(({ client: { path, counter } }) => (counter ? [path, counter.path] : [path]))
  assert.equal(new Set(paths).size, paths.length)
})

/** What every wire's folder has; beside it a wire has files for what only it does. */
const common = [
  'decode-answer.ts',
  'decode-request.ts',
  'decode-turns.ts',
  'encode-answer.ts',
  'encode-request.ts',
  'encode-turns.ts',
  'fields.ts',
  'index.ts',
  'native-json.ts',
  'native-request.ts',
  'native-stream.ts',
  'stop-reasons.ts',
  'usage.ts',
]

test('N1 the folders of the wires have the same files for the same things', () => {
  for (const wire of clientWireNames) {
    const own = files.filter((file) => file.startsWith(`wires/${wire}/`)).map((file) => posix.basename(file))
    assert.deepEqual(
      common.filter((file) => !own.includes(file)),
      [],
      wire,
    )
  }
})

test('N2 the hub knows no wire: it contains neither a wire’s name nor an id prefix', () => {
  const prefixes = ['msg_', 'chatcmpl-', 'resp_', 'fc_', 'rs_', ...clientWires.map(({ client }) => client.callIdPrefix)]
  const words = new RegExp(`\\b(?:${[...clientWireNames, ...prefixes].join('|')})`)
  const hub = files.filter((file) => file.startsWith('inference/'))
  assert.ok(hub.length > 15)
  assert.deepEqual(
    hub.filter((file) => words.test(textOf(file))),
    [],
  )
})
