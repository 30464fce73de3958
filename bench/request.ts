import { wires } from '../src/wires/wires.ts'
import type { TestedServer } from './servers.ts'
import type { Workload } from './workloads.ts'

/** The gateway finds the answer by the model, the others by the path. */
export function requestOf(workload: Workload, server: TestedServer): Buffer {
  const model = `${workload.answer}-${workload.modelWire}`
  const body = Buffer.from(JSON.stringify({ model, ...workload.body }))
  const path = (isGateway(server) ? '' : `/${workload.answer}`) + wires[workload.wire].path
  // As many headers as a vendor's SDK sends.
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: 127.0.0.1:${server.port}`,
    `authorization: Bearer ${server.key}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    'accept: application/json',
    'accept-encoding: identity',
    'user-agent: sdk/js 1.0.0',
    'x-sdk-lang: js',
    'x-sdk-package-version: 1.0.0',
    'x-sdk-runtime: node',
    'x-sdk-os: linux',
    'x-sdk-arch: x64',
    'x-sdk-retry-count: 0',
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
}

function isGateway({ name }: TestedServer): boolean {
  return name !== 'nginx' && name !== 'bare'
}
