import { gzipSync } from 'node:zlib'

/** @property mode such as 0o755 @property data the content of a file @property link the target of a symbolic link */
export type TarEntry = { path: string; mode: number; data?: Buffer; link?: string; owner?: number }

/**
 * Writes a tar archive (ustar, POSIX 1003.1) that depends only on names, modes and contents. Entries are sorted and
 * have the same time. They belong to root unless they have an `owner`.
 * @param seconds the time of all entries, in Unix seconds
 * @throws Error for a path that is too long for the form
 */
export function writeTar(entries: readonly TarEntry[], seconds = 0): Buffer {
  const sorted = [...entries].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  const blocks = sorted.flatMap((entry) => [header(entry, seconds), ...(entry.data ? [padded(entry.data)] : [])])
  return Buffer.concat([...blocks, Buffer.alloc(1_024)])
}

/** Compresses by the zlib of the Node that runs this. It writes neither a name nor a time. */
export function compress(data: Buffer): Buffer {
  return gzipSync(data, { level: 9 })
}

function header({ path, mode, data, link, owner = 0 }: TarEntry, seconds: number): Buffer {
  const kind = data ? '0' : link === undefined ? '5' : '2'
  const [prefix, name] = cut(kind === '5' ? `${path}/` : path)
  const block = Buffer.alloc(512)
  const put = (text: string, at: number, bytesMax: number) => {
    if (Buffer.byteLength(text) > bytesMax) throw new Error(`${path}: too long for an archive`)
    block.write(text, at)
  }
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')
  put(name, 0, 100)
  put(octal(mode, 7), 100, 7)
  put(octal(owner, 7), 108, 7)
  put(octal(owner, 7), 116, 7)
  put(octal(data?.length ?? 0, 11), 124, 11)
  put(octal(seconds, 11), 136, 11)
  put(' '.repeat(8), 148, 8)
  put(kind, 156, 1)
  put(link ?? '', 157, 100)
  put('ustar\x0000', 257, 8)
  put(prefix, 345, 155)
  const sum = block.reduce((total, byte) => total + byte, 0)
  put(`${octal(sum, 6)}\0 `, 148, 8)
  return block
}

/** A name has 100 bytes, and the folders before it 155. */
function cut(path: string): [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= 100) return ['', path]
  for (let at = path.indexOf('/'); at !== -1 && at < path.length - 1; at = path.indexOf('/', at + 1))
    if (Buffer.byteLength(path.slice(at + 1)) <= 100) return [path.slice(0, at), path.slice(at + 1)]
  throw new Error(`${path}: too long for an archive`)
}

function padded(data: Buffer): Buffer {
  return Buffer.concat([data, Buffer.alloc((512 - (data.length % 512)) % 512)])
}
