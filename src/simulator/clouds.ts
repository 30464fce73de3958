import { crc32 } from 'node:zlib'
import { asObject } from '../bytes/json.ts'
import { Rejection } from './prompt.ts'

/*
 * The messages wire as two clouds serve it. The path has the model and whether a stream is requested, and the body has
 * the version. One of the clouds streams in binary frames. The gateway's own code for clouds is not used here, because
 * the simulator tests it.
 */

/** The media type of a stream in frames (smithy.io/2.0/aws/amazon-eventstream.html, November 2026). */
export const frameType = 'application/vnd.amazon.eventstream'

/**
 * The parts of a request that are in its path. `model` has its percent-escapes. `omits` lists members that the body must
 * not have.
 */
export type CloudPath = { model: string; isStream: boolean; isFramed: boolean; omits: readonly string[] }

const places: readonly { path: RegExp; isStream: boolean; isFramed?: true; omits: readonly string[] }[] = [
  { path: /^\/model\/([^/]+)\/invoke$/, isStream: false, omits: ['model', 'stream'] },
  {
    path: /^\/model\/([^/]+)\/invoke-with-response-stream$/,
    isStream: true,
    isFramed: true,
    omits: ['model', 'stream'],
  },
  { path: /\/publishers\/anthropic\/models\/([^/:]+):rawPredict$/, isStream: false, omits: ['model'] },
  { path: /\/publishers\/anthropic\/models\/([^/:]+):streamRawPredict$/, isStream: true, omits: ['model'] },
]

/** Reads the path of a request. @returns undefined if it is not a cloud's path */
export function readCloudPath(path: string): CloudPath | undefined {
  for (const { path: pattern, isStream, isFramed = false, omits } of places) {
    const [, model] = pattern.exec(path) ?? []
    if (model !== undefined) return { model, isStream, isFramed, omits }
  }
  return undefined
}

/**
 * Converts the body to the ordinary form of the wire. @throws Rejection for members that the cloud refuses, or that are
 * missing
 */
export function openEnvelope(json: unknown, { model, isStream, omits }: CloudPath): unknown {
  const body = asObject(json)
  if (!body) return json
  const { anthropic_version: version, anthropic_beta: _, ...rest } = body
  const extra = omits.find((name) => name in body)
  if (extra) throw new Rejection({ status: 400, message: `${extra}: Extra inputs are not permitted`, param: extra })
  if (typeof version !== 'string')
    throw new Rejection({ status: 400, message: 'anthropic_version: Field required', param: 'anthropic_version' })
  return { ...rest, model: decodeURIComponent(model), stream: isStream }
}

/** Makes the frame for the text of an event. An error becomes an exception. A text without data gives no bytes. */
export function frameOfEvent(text: string): Buffer {
  const data = /^data: (.*)$/m.exec(text)?.[1]
  if (data === undefined) return Buffer.alloc(0)
  const { type, error } = JSON.parse(data) as { type?: string; error?: { message?: string } }
  if (type === 'error')
    return frame(
      { ':message-type': 'exception', ':exception-type': 'modelStreamErrorException' },
      { message: error?.message ?? '' },
    )
  return frame({ ':message-type': 'event', ':event-type': 'chunk' }, { bytes: Buffer.from(data).toString('base64') })
}

function frame(headers: Record<string, string>, payload: object): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(Buffer.byteLength(value))
    return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, Buffer.from(value)])
  })
  const head = Buffer.concat(lines)
  const body = Buffer.from(JSON.stringify(payload))
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(prelude.length + head.length + body.length + 4)
  prelude.writeUInt32BE(head.length, 4)
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
  const whole = Buffer.concat([prelude, head, body, Buffer.alloc(4)])
  whole.writeUInt32BE(crc32(whole.subarray(0, -4)), whole.length - 4)
  return whole
}
