import { base64ToText, cleanBase64, cleanMime, parseDataUrl } from '../../inference/data-url.ts'
import { imageTypeOf } from '../../inference/estimate-media.ts'
import type { DocumentPart, ImagePart } from '../../inference/request.ts'
import { type Json, optional, readString } from './read-value.ts'
import { refusals, refuse } from './refusals.ts'

/**
 * Reads an image given as a data URL (R-IMG). Images at remote addresses are never fetched (ruling T3).
 * @param part the place of the content part that has the image
 */
export function readImageUrl(value: unknown, at: string, part: string, detail?: string): ImagePart {
  const url = readString(value, at)
  const data = parseDataUrl(url)
  if (!data) refuse(at, url.slice(0, 5).toLowerCase() === 'data:' ? badData : refusals.remoteFile)
  const image: ImagePart = { type: 'image', at: part, mime: imageMime(data.mime, data.base64, at), base64: data.base64 }
  return detail === undefined ? image : { ...image, detail }
}

/**
 * The type of an image. If the client names no usable type, the image's first bytes decide (ruling Y8).
 * @throws GatewayError 400 if the first bytes belong to no known format
 */
export function imageMime(mime: string, base64: string, at: string): string {
  if (!nameless.test(mime)) return mime
  return imageTypeOf(base64) ?? refuse(at, unknownImage)
}

/** Types that do not identify an image. `text/plain` is the type of a data URL without a type (RFC 2397). */
const nameless = /^(?:text\/plain|(?:application|binary)\/(?:octet-stream|binary)|(?:image|\*)\/\*|[^/]*)$/

const unknownImage = 'the type of this image is unknown; name it in the data URL, such as data:image/png;base64,…'

/**
 * Reads a file given as a data URL or as base64 (R-DOC). Base64 alone counts as a PDF. A text file is returned as text.
 */
export function readFile(file: Json, at: string, part: string): DocumentPart {
  if (file['file_data'] === undefined || file['file_data'] === null) refuse(at, refusals.remoteFile)
  const text = readString(file['file_data'], `${at}.file_data`)
  const data = parseDataUrl(text) ?? { mime: 'application/pdf', base64: readBase64(text, `${at}.file_data`) }
  const title = optional(readString, file['filename'], `${at}.filename`)
  return documentOf(part, data.mime, data.base64, title)
}

/**
 * Media types whose content is text, including JSON and other `application` types. Models of the messages wire accept
 * only PDFs as base64 documents.
 */
const textual = /^(?:text\/|application\/(?:.+\+)?(?:json|xml|(?:x-)?yaml|toml|javascript|x-ndjson)$)/

/**
 * A document from base64 data. A text document is kept as text, so that wires without files can send the text inline.
 */
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
