// @ts-expect-error It is no public module, and has no types: here it is the other reader of the same bytes.
import { HTTPParser, methods } from 'node:_http_common'

/** What Node's parser makes of bytes. */
export type ReadByNode = {
  /** Undefined where it has seen no whole head. */
  head: { method: string; target: string; minor: number; status: number; fields: [string, string][] } | undefined
  body: string
  isWhole: boolean
  /** It stopped. */
  isFault: boolean
}

export function readByNode(kind: 'request' | 'response', bytes: Buffer): ReadByNode {
  const read: ReadByNode = { head: undefined, body: '', isWhole: false, isFault: false }
  const parser = new HTTPParser()
  parser.initialize(kind === 'request' ? HTTPParser.REQUEST : HTTPParser.RESPONSE, {}, 65_536, 0)
  /** If there are many fields, they are reported before the head is. */
  const early: string[] = []
  parser[HTTPParser.kOnHeaders | 0] = (list: string[]) => void early.push(...list)
  parser[HTTPParser.kOnHeadersComplete | 0] = (
    ...[, minor, list, method, target, status]: [number, number, string[] | undefined, number, string, number]
  ) => {
    const flat = list ?? early.splice(0)
    const fields: [string, string][] = []
    for (let i = 0; i < flat.length; i += 2) fields.push([flat[i]!.toLowerCase(), flat[i + 1]!])
    read.head ??= { method: methods[method], target, minor, status, fields }
    return 0
  }
  parser[HTTPParser.kOnBody | 0] = (piece: Buffer) => {
    if (!read.isWhole) read.body += piece.toString('latin1')
  }
  parser[HTTPParser.kOnMessageComplete | 0] = () => {
    read.isWhole = true
  }
  read.isFault = parser.execute(bytes) instanceof Error
  return read
}
