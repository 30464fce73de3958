import { wires } from '../src/wires/wires.ts'
import type { TestedServer } from './servers.ts'
import type { Workload } from './workloads.ts'

/** The bytes of a row's requests to a server, which are sent in turn. */
export function requestsOf(workload: Workload, server: TestedServer): Buffer[] {
  const { keysInTurn = [(workload.hasBudget ? server.budgetKey : undefined) ?? server.key] } = server
  return keysInTurn.flatMap((key) => workload.bodies.map((_, at) => bytesOf(askOf(workload, { ...server, key }, at))))
}

function bytesOf({ path, headers, body }: Ask): Buffer {
  const head = [`POST ${path} HTTP/1.1`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
}

export type Ask = { path: string; headers: Record<string, string>; body: Buffer }

/**
 * Builds a request of a row. The model says to our gateway which answer is asked for, and the path says it to a pipe. A
 * peer was started for one answer.
 * @param at which of the row's bodies
 */
export function askOf(workload: Workload, server: TestedServer, at = 0): Ask {
  const { port, key, peer } = server
  const model = peer?.modelOf(workload) ?? `${workload.answer}-${workload.modelWire}`
  const body = Buffer.from(JSON.stringify({ model, ...workload.bodies[at] }))
  // A pipe passes on the answers that the gateway gets from its model.
  const path = isGateway(server)
    ? wires[workload.wire].client.path
    : `/${workload.answer}${wires[workload.modelWire].client.path}`
  const headers = {
    host: `127.0.0.1:${port}`,
    ...(peer?.headers ?? { authorization: `Bearer ${key}` }),
    'content-type': 'application/json',
    'content-length': String(body.length),
    ...headersOfSdk,
  }
  return { path, headers, body }
}

/** As many headers as a vendor's SDK sends. */
const headersOfSdk = {
  accept: 'application/json',
  'accept-encoding': 'identity',
  'user-agent': 'sdk/js 1.0.0',
  'x-sdk-lang': 'js',
  'x-sdk-package-version': '1.0.0',
  'x-sdk-runtime': 'node',
  'x-sdk-os': 'linux',
  'x-sdk-arch': 'x64',
  'x-sdk-retry-count': '0',
}

export function isGateway({ name }: Pick<TestedServer, 'name'>): boolean {
  return name !== 'nginx' && name !== 'bare'
}
