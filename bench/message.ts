/**
 * Tells where each HTTP/1.1 message on a connection ends, by content-length or by the last chunk. Only for messages that
 * come one at a time and that we made ourselves; what a benchmark can afford to spend on reading.
 */
export function createMessageReader(onMessage: (head: string, bytes: number) => void): (chunk: Buffer) => void {
  let head = ''
  let isInBody = false
  let isChunked = false
  let missingBytes = 0
  let bytes = 0
  let tail = ''
  return (chunk) => {
    bytes += chunk.length
    let body = chunk
    if (!isInBody) {
      const text = head + chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) {
        head = text
        return
      }
      body = chunk.subarray(chunk.length - (text.length - end - 4))
      head = text.slice(0, end)
      isInBody = true
      isChunked = /^transfer-encoding: *chunked$/im.test(head)
      missingBytes = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0)
      tail = ''
    }
    if (isChunked) {
      tail = (tail + body.toString('latin1', Math.max(0, body.length - 7))).slice(-7)
      if (tail !== '\r\n0\r\n\r\n') return
    } else {
      missingBytes -= body.length
      if (missingBytes > 0) return
    }
    const done = head
    const size = bytes
    head = ''
    isInBody = false
    bytes = 0
    onMessage(done, size)
  }
}
