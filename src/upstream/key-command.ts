import { type ChildProcess, spawn } from 'node:child_process'

/** What a command may print, in bytes. */
const outputBytesMax = 65_536

/** How long what it started may keep its output open behind its end, in ms. */
const lingerMs = 1_000

/** What became of it: what it printed, or why that is nothing, in words of the log. */
export type CommandEnd = { text: string } | { why: string }

/**
 * Runs a program without a shell and takes what it prints. It has a process group of its own, so that what it started and that
 * keeps its output open is ended as well: by `stop`, or soon behind its own end. Its errors go nowhere: they may hold what
 * nobody shall read.
 * @param onEnd called once, unless it was stopped
 */
export function runCommand([program = '', ...args]: readonly string[], onEnd: (end: CommandEnd) => void) {
  let isOver = false
  let isClosed = false
  let linger: NodeJS.Timeout | undefined
  let child: ChildProcess | undefined
  const end = (what: CommandEnd) => {
    if (isOver) return
    isOver = true
    onEnd(what)
  }
  try {
    child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true, windowsHide: true })
  } catch (error) {
    queueMicrotask(() => end({ why: codeOf(error) }))
  }
  child?.once('error', (error) => end({ why: codeOf(error) }))
  const chunks: Buffer[] = []
  let bytes = 0
  child?.stdout?.on('error', () => {})
  child?.stdout?.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= outputBytesMax) chunks.push(chunk)
    else {
      end({ why: 'it prints too much' })
      stop()
    }
  })
  child?.once('exit', () => {
    linger = setTimeout(() => {
      takeEnd()
      stop()
    }, lingerMs)
  })
  child?.once('close', () => {
    isClosed = true
    clearTimeout(linger)
    takeEnd()
  })
  return { stop }

  function takeEnd(): void {
    const { exitCode, signalCode } = child!
    if (exitCode === 0) end({ text: Buffer.concat(chunks).toString('utf8') })
    else end({ why: signalCode ?? `exit ${exitCode}` })
  }

  /** Ends it, and all that it started. Nothing is told of it any more. */
  function stop(): void {
    isOver = true
    clearTimeout(linger)
    child?.stdout?.destroy()
    if (child?.pid === undefined || isClosed) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      child.kill('SIGKILL')
    }
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'it cannot be started'
}
