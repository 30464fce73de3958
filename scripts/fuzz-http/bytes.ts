/** Returns a random integer below the limit. The same seed gives the same numbers (xorshift). */
export type Draw = (limit: number) => number

export function createDraw(seed: number): Draw {
  let state = seed >>> 0 || 1
  return (limit) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return limit === 0 ? 0 : state % limit
  }
}

const length = 'POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello'
const chunked =
  'POST /b?c=d HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6;a="b"\r\n world\r\n0\r\nx-t: 1\r\n\r\n'
const bare = 'GET /e HTTP/1.1\r\nhost: x\r\nconnection: keep-alive\r\n\r\n'

/** The bytes of one client on a connection: one request, or several in a row. */
export const requests: readonly string[] = [
  length,
  chunked,
  bare,
  length + bare,
  chunked + length,
  bare + chunked + bare,
  `POST /f HTTP/1.1\r\nhost: x\r\ncontent-length: ${bare.length}\r\n\r\n${bare}`,
  `POST /g HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${bare.length.toString(16)}\r\n${bare}\r\n0\r\n\r\n${length}`,
  'PUT http://x/h HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nab',
  'GET /i HTTP/1.0\r\nconnection: keep-alive\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n',
]

const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n'

/** The bytes of an upstream after one request. */
export const responses: readonly string[] = [
  `${head}content-length: 5\r\n\r\nhello`,
  `${head}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6;a="b"\r\n world\r\n0\r\nx-t: 1\r\n\r\n`,
  `${head}\r\nuntil the end`,
  'HTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n',
  `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${head}content-length: 2\r\n\r\nab`,
  `HTTP/1.1 100 Continue\r\n\r\n${head}content-length: 2\r\n\r\nab`,
  'HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nab',
  `HTTP/1.1 404\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
  `${head}content-length: 2\r\n\r\nabHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\ncd`,
]

/** Valid and broken pieces of HTTP that are inserted. */
const tokens: readonly string[] = [
  ...'\r\n \t:;,=0-+"\\\0\x0b\x7f\x85\xff',
  '\r\n',
  '\r\n\r\n',
  '\n\n',
  '\r\n ',
  '0\r\n\r\n',
  'content-length: 3\r\n',
  'content-length: 0\r\n',
  'Content-Length : 3\r\n',
  'content-length: 5, 5\r\n',
  'content-length: +5\r\n',
  'transfer-encoding: chunked\r\n',
  'transfer-encoding: gzip, chunked\r\n',
  'transfer-encoding: chunked, identity\r\n',
  'transfer-encoding:\x0bchunked\r\n',
  'Transfer-Encoding\t: chunked\r\n',
  'connection: close\r\n',
  'connection: content-length\r\n',
  'upgrade: h2c\r\nconnection: upgrade\r\n',
  'expect: 100-continue\r\n',
  'x: y\r\n',
  ' folded\r\n',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/2.0',
  'ffffffffffffffff',
  '00000000000000005',
  '0x5',
  '5;',
  'GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
]

/** Damages a text in up to three places: other pieces, cut and doubled slices, other cases, flipped bits. */
export function damage(text: string, draw: Draw): string {
  let damaged = text
  for (let i = draw(4); i > 0; i--) damaged = damageOnce(damaged, draw)
  return damaged
}

function damageOnce(text: string, draw: Draw): string {
  const at = draw(text.length)
  const end = at + 1 + draw(8)
  switch (draw(6)) {
    case 0:
      return text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << draw(8))) + text.slice(at + 1)
    case 1:
      return text.slice(0, at) + text.slice(end)
    case 2:
      return text.slice(0, end) + text.slice(at)
    case 3:
      return text.slice(0, at) + text.slice(at, end).toUpperCase() + text.slice(end)
    case 4: {
      // A field is inserted at the beginning of a line, because elsewhere it would not be read as a field.
      const starts = [...text.matchAll(/\r\n/g)].map(({ index }) => index + 2)
      const start = starts[draw(starts.length)] ?? 0
      return text.slice(0, start) + tokens[draw(tokens.length)]! + text.slice(start)
    }
    default:
      return text.slice(0, at) + tokens[draw(tokens.length)]! + text.slice(at)
  }
}
