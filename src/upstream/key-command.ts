import { type ChildProcess, spawn } from 'node:child_process'

/** What a command may print, in bytes. */
const outputBytesMax = 65_536

/** What became of it: what it printed, or why that is nothing, in words of the log. */
export type CommandEnd = { text: string } | { why: string }

/**
 * Runs a program without a shell and takes what it prints. It has a process group of its own, so that `stop` ends what it
 * started as well. Its errors go nowhere: they may hold what nobody shall read.
 * @param onEnd called once, unless it was stopped
 */
export function runCommand([program = '', ...args]: readonly string[], onEnd: (end: CommandEnd) => void) {
  let isOver = false
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
  child?.once('close', (code, signal) => {
    if (code === 0) end({ text: Buffer.concat(chunks).toString('utf8') })
    else end({ why: signal === null ? `exit ${code}` : signal })
  })
  return { stop }

  /** Ends it, and all that it started. Nothing is told of it any more. */
  function stop(): void {
    isOver = true
    child?.stdout?.destroy()
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
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
