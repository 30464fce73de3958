import type { OciImage } from './oci.ts'

/**
 * Pushes an image by the OCI Distribution Specification 1.1: blobs that are missing, then the manifest under a tag.
 * @param repository the address of a repository, such as `http://127.0.0.1:5000/triwire`
 * @param authorization the value of the header `authorization`, if the registry needs it
 * @returns the number of blobs that were sent
 * @throws Error with the status of a failed request, or if the registry has another image under the tag. Before the
 *   push, another image is allowed for a version of development
 */
export async function pushImage(
  repository: string,
  image: OciImage,
  tag: string,
  authorization?: string,
): Promise<number> {
  const { origin, pathname } = new URL(repository)
  const base = `${origin}/v2${pathname.replace(/\/$/, '')}`
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
  const before = await fetch(`${base}/manifests/${tag}`, { headers: { ...headers, accept: image.mediaType } })
  const isOther = before.status === 200 && !Buffer.from(await before.arrayBuffer()).equals(image.manifest)
  if (isOther && !tag.endsWith('-dev'))
    throw new Error(`the registry has another image under ${tag}, and a release never changes: set another version`)
  let sent = 0
  for (const [digest, data] of image.blobs) {
    const head = await fetch(`${base}/blobs/${digest}`, { method: 'HEAD', headers })
    if (head.status === 200) continue
    const begun = await must(202, `${base}/blobs/uploads/`, { method: 'POST', headers })
    const place = new URL(begun.headers.get('location') ?? '', base)
    place.searchParams.set('digest', digest)
    const type = { 'content-type': 'application/octet-stream' }
    await must(201, place, { method: 'PUT', headers: { ...headers, ...type }, body: new Uint8Array(data) })
    sent++
  }
  const type = { 'content-type': image.mediaType }
  const body = new Uint8Array(image.manifest)
  await must(201, `${base}/manifests/${tag}`, { method: 'PUT', headers: { ...headers, ...type }, body })
  const read = await must(200, `${base}/manifests/${tag}`, { headers: { ...headers, accept: image.mediaType } })
  const found = Buffer.from(await read.arrayBuffer())
  if (!found.equals(image.manifest)) throw new Error(`the registry has another manifest under ${tag}`)
  return sent
}

async function must(status: number, url: string | URL, options: RequestInit): Promise<Response> {
  const response = await fetch(url, options)
  if (response.status === status) return response
  throw new Error(
    `${options.method ?? 'GET'} ${new URL(url).pathname} was answered ${response.status}: ${(await response.text()).slice(0, 300)}`,
  )
}
