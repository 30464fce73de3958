import { ownCopy } from './memory.ts'
import { parseUpstreamJson } from './scan.ts'
import type { Step } from './step.ts'

/**
 * One event of a text/event-stream, as the HTML standard defines it. A frame with empty data is a comment, which only
 * shows that the stream is alive. `broken` means that the event is too large, or that the stream ended inside it. A
 * reader stops after a broken frame. If the connection breaks, the caller passes `cutFrame` to the decoder instead of
 * ending the reader.
 */
export type SseFrame = { event: string | undefined; data: string; broken?: 'oversized' | 'cut' }

/** The largest event, and the largest line, in UTF-16 units (translation 4.1). */
export const eventSizeMax = 8 * 1024 * 1024

export const cutFrame: SseFrame = { event: undefined, data: '', broken: 'cut' }
const oversizedFrame: SseFrame = { event: undefined, data: '', broken: 'oversized' }
const aliveFrame: SseFrame = { event: undefined, data: '' }

/** Whether data is `[DONE]`, the end mark of some wires. White space around it is ignored. */
export function isDoneMark(data: string): boolean {
  return data.length < 64 && data.trim() === '[DONE]'
}

/** Returns an event as text, with its final blank line. Without that line, clients may drop the event (clients §7). */
export function sseText(event: string, json: string): string {
  return `event: ${event}\ndata: ${json}\n\n`
}

type SseReader = Step<Uint8Array, SseFrame> & {
  /**
   * Copies the kept part of an unfinished frame, so that the garbage collector can free the larger piece from which it
   * was cut.
   */
  compact(): void
}

/**
 * Cuts bytes into frames, wherever the network has split them. Every character is searched only once. Call `end()` only
 * if the stream closed cleanly. A last event without its final blank line then counts, unless its data is incomplete.
 */
export function createSseReader(): SseReader {
  const decode = createUtf8Decoder()
  /** The unfinished line. */
  let line = ''
  let event: string | undefined
  let data: string | undefined
  /** The size of `data`: its characters, plus one for each line because empty lines take memory too. */
  let dataSize = 0
  /** Whether the last character was a carriage return. A line feed after it belongs to the same line end. */
  let isAfterReturn = false
  let isDone = false
  return { push, end, compact }

  function compact(): void {
    line = ownCopy(line)
    event = event && ownCopy(event)
    data = data && ownCopy(data)
  }

  function push(bytes: Uint8Array): SseFrame[] {
    const frames: SseFrame[] = []
    if (!isDone) read(decode(bytes, false), frames)
    return frames
  }

  function end(): SseFrame[] {
    const frames: SseFrame[] = []
    if (isDone) return frames
    read(decode(new Uint8Array(0), true), frames)
    if (!isDone && line !== '') readLine(line, frames)
    if (!isDone && data) frames.push(isWhole(data) ? { event, data } : cutFrame)
    isDone = true
    return frames
  }

  function read(text: string, frames: SseFrame[]) {
    let at = 0
    if (isAfterReturn && text !== '') {
      if (text.charCodeAt(0) === 10) at = 1
      isAfterReturn = false
    }
    let feed = text.indexOf('\n', at)
    let carriage = text.indexOf('\r', at)
    while (!isDone && (feed >= 0 || carriage >= 0)) {
      const isFeed = carriage < 0 || (feed >= 0 && feed < carriage)
      const stop = isFeed ? feed : carriage
      readLine(line === '' ? text.slice(at, stop) : line + text.slice(at, stop), frames)
      line = ''
      at = stop + 1
      if (!isFeed) {
        if (at === text.length) isAfterReturn = true
        else if (feed === at) at++
        carriage = text.indexOf('\r', at)
      }
      if (feed >= 0 && feed < at) feed = text.indexOf('\n', at)
    }
    if (at < text.length) line += at === 0 ? text : text.slice(at)
    if (line.length > eventSizeMax) breakOff(frames)
  }

  function readLine(text: string, frames: SseFrame[]) {
    if (text === '') {
      if (data) frames.push({ event, data })
      event = undefined
      data = undefined
      dataSize = 0
    } else if (text.startsWith('data:')) {
      const value = text.slice(text.charCodeAt(5) === 32 ? 6 : 5)
      dataSize += value.length + 1
      if (dataSize > eventSizeMax) breakOff(frames)
      else data = data === undefined ? value : `${data}\n${value}`
    } else if (text.startsWith('event:')) {
      event = text.slice(text.charCodeAt(6) === 32 ? 7 : 6)
    } else if (text.charCodeAt(0) === 58) {
      frames.push(aliveFrame)
    }
    // The fields `id` and `retry` and all unknown fields are ignored.
  }

  function breakOff(frames: SseFrame[]) {
    frames.push(oversizedFrame)
    isDone = true
    line = ''
    data = undefined
  }
}

function isWhole(data: string): boolean {
  if (isDoneMark(data)) return true
  try {
    parseUpstreamJson(data)
    return true
  } catch {
    return false
  }
}

/**
 * Decodes UTF-8 in pieces. A character that is split waits for the next call. This is three times as fast as
 * TextDecoder's streaming mode.
 */
function createUtf8Decoder(): (bytes: Uint8Array, isLast: boolean) => string {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let rest: Uint8Array | undefined
  let isFirst = true
  return (bytes, isLast) => {
    let whole = bytes
    if (rest) {
      whole = new Uint8Array(rest.length + bytes.length)
      whole.set(rest)
      whole.set(bytes, rest.length)
      rest = undefined
    }
    const split = isLast ? 0 : unfinishedBytes(whole)
    if (split > 0) {
      rest = whole.slice(whole.length - split)
      whole = whole.subarray(0, whole.length - split)
    }
    if (whole.length === 0) return ''
    const text = decoder.decode(whole)
    const skipsMark = isFirst && text.charCodeAt(0) === 0xfeff
    isFirst = false
    return skipsMark ? text.slice(1) : text
  }
}

/** Counts the bytes at the end of a piece that begin an unfinished character. */
function unfinishedBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
  }
  return 0
}
