import { base64ToText, cleanBase64, cleanMime, parseDataUrl } from '../../inference/data-url.ts'
import { imageTypeOf } from '../../inference/estimate-media.ts'
import type { DocumentPart, ImagePart } from '../../inference/request.ts'
import { type Json, optional, readString } from './read-value.ts'
import { refusals, refuse } from './refusals.ts'

/** An image given as a data URL (R-IMG). A remote one is never fetched (ruling T3). @param part the place of the part */
export function readImageUrl(value: unknown, at: string, part: string, detail?: string): ImagePart {
  const url = readString(value, at)
  const data = parseDataUrl(url)
  if (!data) refuse(at, url.slice(0, 5).toLowerCase() === 'data:' ? badData : refusals.remoteFile)
  const image: ImagePart = { type: 'image', at: part, mime: imageMime(data.mime, data.base64, at), base64: data.base64 }
  return detail === undefined ? image : { ...image, detail }
}

/**
 * The type of an image, by its first bytes if the client names none or one that says nothing (ruling Y8).
 * @throws GatewayError 400 if they are those of no known format
 */
export function imageMime(mime: string, base64: string, at: string): string {
  if (!nameless.test(mime)) return mime
  return imageTypeOf(base64) ?? refuse(at, unknownImage)
}

/** Types that say nothing of an image; `text/plain` is that of a data URL without one (RFC 2397). */
const nameless = /^(?:text\/plain|(?:application|binary)\/(?:octet-stream|binary)|(?:image|\*)\/\*|[^/]*)$/

const unknownImage = 'the type of this image is unknown; name it in the data URL, such as data:image/png;base64,…'

/** A file given as a data URL or as bare base64, which is taken for a PDF (R-DOC). Text comes out as text. */
export function readFile(file: Json, at: string, part: string): DocumentPart {
  if (file['file_data'] === undefined || file['file_data'] === null) refuse(at, refusals.remoteFile)
  const text = readString(file['file_data'], `${at}.file_data`)
  const data = parseDataUrl(text) ?? { mime: 'application/pdf', base64: readBase64(text, `${at}.file_data`) }
  const title = optional(readString, file['filename'], `${at}.filename`)
  return documentOf(part, data.mime, data.base64, title)
}

/** Types of text that are not called so, too: of documents in base64 a messages model takes PDFs alone. */
const textual = /^(?:text\/|application\/(?:.+\+)?(?:json|xml|(?:x-)?yaml|toml|javascript|x-ndjson)$)/

/** A document of base64 data; one of text is kept as text, so that wires without files can have it inline. */
export function documentOf(at: string, mime: string, base64: string, title?: string): DocumentPart {
  const named = title ? { title } : {}
  return textual.test(mime)
    ? { type: 'document', at, mime, text: base64ToText(base64), ...named }
    : { type: 'document', at, mime, base64, ...named }
}

export function readBase64(value: unknown, at: string): string {
  return cleanBase64(readString(value, at)) ?? refuse(at, badData)
}

export function readMime(value: unknown, at: string): string {
  return cleanMime(readString(value, at))
}

const badData = 'the data of a file or image cannot be read; send a data URL with base64 data.'
