import { write } from 'node:fs'

/** How long lines are collected before they are written together, in ms. */
const gatherMs = 25

/** The most characters that wait while the descriptor is slow. Further lines are dropped and counted (F-P12). */
const waitingMax = 1_048_576

type LogSink = {
  /** Takes a line, without its line end. */
  put(line: string): void
  /**
   * Resolves when all lines are written or lost, or after `withinMs`. So a blocked descriptor does not delay the exit.
   */
  flush(withinMs?: number): Promise<void>
}

/**
 * Writes lines to a descriptor without blocking the caller. One write is under way at a time, and further lines wait in
 * memory. Lines are dropped if too many wait, or if a write fails, for example because the disk is full. Dropped lines
 * are counted. The count is logged after the next lines that can be written.
 */
export function createLogSink(descriptor: number, sayDropped: (lines: number) => string): LogSink {
  let waiting = ''
  /** Whether a write is under way or scheduled. */
  let isWriting = false
  let dropped = 0
  /**
   * Whether the last write failed. Then the count of dropped lines is not written alone, because it would be lost too.
   */
  let isFailing = false
  /** Whether the end of the last written line is missing, because the write failed in the middle of it. */
  let isTorn = false
  const whenFlushed: (() => void)[] = []

  return { put, flush }

  function put(line: string): void {
    if (waiting.length > waitingMax) {
      dropped++
      return
    }
    waiting += `${line}\n`
    if (isWriting) return
    isWriting = true
    setTimeout(drain, gatherMs)
  }

  function drain(): void {
    isWriting = false
    if (waiting === '' && (dropped === 0 || isFailing)) {
      for (const resolve of whenFlushed.splice(0)) resolve()
      return
    }
    isWriting = true
    const end = isTorn ? '\n' : ''
    const notice = dropped > 0 ? `${sayDropped(dropped)}\n` : ''
    const told = dropped
    dropped = 0
    const bytes = Buffer.from(end + waiting + notice)
    waiting = ''
    writeAll(bytes, 0, (written) => {
      isFailing = written < bytes.length
      if (isFailing) {
        // The notice of dropped lines is the last of the written lines, so it is lost too, but not counted.
        dropped += told + countLines(bytes, Math.max(written, end.length)) - (told > 0 ? 1 : 0)
        if (written > 0) isTorn = bytes[written - 1] !== lineEnd
      } else isTorn = false
      if (waiting !== '' && whenFlushed.length === 0) setTimeout(drain, gatherMs)
      else drain()
    })
  }

  /** @param then called with the number of bytes written: all of them, or those before a failure */
  function writeAll(bytes: Buffer, from: number, then: (written: number) => void): void {
    write(descriptor, bytes, from, bytes.length - from, null, (error, written) => {
      if (error?.code === 'EAGAIN') setTimeout(writeAll, 10, bytes, from, then).unref()
      else if (!error && from + written < bytes.length) writeAll(bytes, from + written, then)
      else then(error ? from : bytes.length)
    })
  }

  function flush(withinMs = 2_000): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs)
      whenFlushed.push(() => {
        clearTimeout(timer)
        resolve()
      })
      if (isWriting) return
      // Before the exit everything is tried once more, because the descriptor may work again.
      isFailing = false
      drain()
    })
  }
}

const lineEnd = 10

function countLines(bytes: Buffer, from: number): number {
  let lines = 0
  for (let at = bytes.indexOf(lineEnd, from); at >= 0; at = bytes.indexOf(lineEnd, at + 1)) lines++
  return lines
}
