/*
 * Writes the part of llama.cpp's model format that a small model needs: version 3, numbers in little endian, a head of
 * named values, then the tensors, each at a multiple of 32 bytes.
 */

/** A named value of the head. `count` is an unsigned, `code` a signed number of 32 bits. */
export type Value =
  | { count: number }
  | { float: number }
  | { flag: boolean }
  | { text: string }
  | { texts: readonly string[] }
  | { codes: readonly number[] }

/** Rows of 32-bit floats, or one row. */
export type Tensor = { rows?: number; columns: number; values: Float32Array }

const types = { count: 4, code: 5, float: 6, flag: 7, text: 8, list: 9 }
const alignment = 32

export function writeGguf(values: Readonly<Record<string, Value>>, tensors: Readonly<Record<string, Tensor>>): Buffer {
  const head: Buffer[] = [
    Buffer.from('GGUF'),
    u32(3),
    u64(Object.keys(tensors).length),
    u64(Object.keys(values).length),
  ]
  for (const [name, value] of Object.entries(values)) head.push(text(name), ...encode(value))
  const data: Buffer[] = []
  let offset = 0
  for (const [name, { rows, columns, values: floats }] of Object.entries(tensors)) {
    const sizes = rows === undefined ? [columns] : [columns, rows]
    head.push(text(name), u32(sizes.length), ...sizes.map(u64), u32(0), u64(offset))
    const bytes = padded(Buffer.from(floats.buffer, floats.byteOffset, floats.byteLength))
    data.push(bytes)
    offset += bytes.length
  }
  return Buffer.concat([padded(Buffer.concat(head)), ...data])
}

function encode(value: Value): Buffer[] {
  if ('count' in value) return [u32(types.count), u32(value.count)]
  if ('flag' in value) return [u32(types.flag), Buffer.from([value.flag ? 1 : 0])]
  if ('text' in value) return [u32(types.text), text(value.text)]
  if ('texts' in value) return [u32(types.list), u32(types.text), u64(value.texts.length), ...value.texts.map(text)]
  if ('codes' in value) return [u32(types.list), u32(types.code), u64(value.codes.length), ...value.codes.map(u32)]
  const float = Buffer.alloc(4)
  float.writeFloatLE(value.float)
  return [u32(types.float), float]
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([u64(bytes.length), bytes])
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((alignment - (bytes.length % alignment)) % alignment)])
}
