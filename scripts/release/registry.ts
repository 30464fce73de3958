import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sha256Hex } from '../../src/ids.ts'

/**
 * Starts a registry in memory, on loopback, for dry runs and tests. It has the parts of the OCI Distribution
 * Specification 1.1 that a push needs. It refuses a blob whose digest is wrong, and a manifest whose blobs are missing.
 */
export async function startRegistry() {
  const blobs = new Map<string, Buffer>()
  const manifests = new Map<string, { type: string; data: Buffer }>()
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const { status, headers, body } = answer(request.method!, new URL(request.url!, 'http://registry'), {
      type: request.headers['content-type'] ?? '',
      data: Buffer.concat(pieces),
    })
    response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, blobs, manifests, close }

  function answer(method: string, { pathname, searchParams }: URL, sent: { type: string; data: Buffer }): Answered {
    const [, name = '', kind = '', reference = ''] = /^\/v2\/(.+)\/(blobs|manifests)\/(.+)$/.exec(pathname) ?? []
    const digest = `sha256:${sha256Hex(sent.data)}`
    if (kind === 'blobs' && method === 'POST' && reference === 'uploads/')
      return { status: 202, headers: { location: `/v2/${name}/blobs/uploads/one` } }
    if (kind === 'blobs' && method === 'PUT') {
      if (searchParams.get('digest') !== digest) return { status: 400, body: 'DIGEST_INVALID' }
      blobs.set(digest, sent.data)
      return { status: 201, headers: { 'docker-content-digest': digest } }
    }
    if (kind === 'manifests' && method === 'PUT') {
      const { config, layers } = JSON.parse(sent.data.toString()) as { config: Part; layers: Part[] }
      const isWhole = [config, ...layers].every(({ digest, size }) => blobs.get(digest)?.length === size)
      if (!isWhole) return { status: 400, body: 'MANIFEST_BLOB_UNKNOWN' }
      for (const place of [reference, digest]) manifests.set(`${name}:${place}`, sent)
      return { status: 201, headers: { 'docker-content-digest': digest } }
    }
    const manifest = manifests.get(`${name}:${reference}`)
    const found = kind === 'blobs' ? { type: 'application/octet-stream', data: blobs.get(reference) } : manifest
    if ((method !== 'GET' && method !== 'HEAD') || !found?.data) return { status: 404, body: 'NOT_FOUND' }
    return { status: 200, headers: { 'content-type': found.type }, body: found.data }
  }
}

type Answered = { status: number; headers?: Record<string, string>; body?: string | Buffer }

type Part = { digest: string; size: number }
