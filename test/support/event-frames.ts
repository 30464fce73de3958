import { crc32 } from 'node:zlib'

/** Makes a frame of `application/vnd.amazon.eventstream` with text headers. */
export function frameOf(headers: Record<string, string>, payload: string | Buffer): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => {
    const [key, text] = [Buffer.from(name), Buffer.from(value)]
    return Buffer.concat([Buffer.from([key.length]), key, Buffer.from([7, text.length >> 8, text.length & 255]), text])
  })
  return framed(Buffer.concat(lines), Buffer.from(payload))
}

/** Makes a frame with the bytes of its headers. */
export function framed(headers: Buffer, payload: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt32BE(12 + headers.length + payload.length + 4, 0)
  head.writeUInt32BE(headers.length, 4)
  head.writeUInt32BE(crc32(head.subarray(0, 8)), 8)
  const all = Buffer.concat([head, headers, payload])
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(all))
  return Buffer.concat([all, sum])
}

/** Makes the frame of an event of the messages wire, as Bedrock streams it. */
export function chunkOf(event: unknown, more: Record<string, unknown> = {}): Buffer {
  const bytes = Buffer.from(JSON.stringify(event)).toString('base64')
  const headers = { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' }
  return frameOf(headers, JSON.stringify({ bytes, p: 'abcd', ...more }))
}

/** Makes the frame of an exception. @param name such as `throttlingException` */
export function exceptionOf(name: string, said: Record<string, unknown>): Buffer {
  const headers = { ':exception-type': name, ':content-type': 'application/json', ':message-type': 'exception' }
  return frameOf(headers, JSON.stringify(said))
}
