import { base64ToText, cleanBase64, cleanMime, parseDataUrl } from '../inference/data-url.ts'
import type { DocumentPart, ImagePart } from '../inference/request.ts'
import { type Json, optional, readString, refusals, refuse } from './reading.ts'

/** An image given as a data URL (R-IMG). A remote one is never fetched (ruling T3). */
export function readImageUrl(value: unknown, param: string, detail: unknown): ImagePart {
  const url = readString(value, param, 'the URL of an image')
  const data = parseDataUrl(url)
  if (!data)
    refuse(param, url.slice(0, 5).toLowerCase() === 'data:' ? badData(param) : `"${param}": ${refusals.remoteFile}`)
  const part: ImagePart = { type: 'image', mime: data.mime, base64: data.base64 }
  const wanted = optional(readString, detail, param, 'the detail of an image')
  return wanted === undefined ? part : { ...part, detail: wanted }
}

/** A file given as a data URL or as bare base64, which is taken for a PDF (R-DOC). Text comes out as text. */
export function readFile(file: Json, param: string): DocumentPart {
  if (file['file_data'] === undefined || file['file_data'] === null) refuse(param, `"${param}": ${refusals.remoteFile}`)
  const text = readString(file['file_data'], param, 'the data of a file')
  const data = parseDataUrl(text) ?? readBareBase64(text, param)
  const title = optional(readString, file['filename'], param, 'the name of a file')
  return documentOf(data.mime, data.base64, title)
}

/** A document of base64 data; one of text is kept as text, so that wires without files can have it inline. */
export function documentOf(mime: string, base64: string, title?: string): DocumentPart {
  const named = title ? { title } : {}
  return mime.startsWith('text/')
    ? { type: 'document', mime, text: base64ToText(base64), ...named }
    : { type: 'document', mime, base64, ...named }
}

export function readBase64(value: unknown, param: string): string {
  return cleanBase64(readString(value, param, 'base64 data')) ?? refuse(param, badData(param))
}

export function readMime(value: unknown, param: string): string {
  return cleanMime(readString(value, param, 'a media type'))
}

function readBareBase64(text: string, param: string) {
  const base64 = cleanBase64(text)
  if (base64 === undefined) refuse(param, badData(param))
  return { mime: 'application/pdf', base64 }
}

function badData(param: string): string {
  return `"${param}": the data of a file or image cannot be read; send a data URL with base64 data.`
}
