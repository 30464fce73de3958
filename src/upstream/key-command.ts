import { type ChildProcess, spawn } from 'node:child_process'

/** The most that a command may print, in bytes. */
const outputBytesMax = 65_536

/** The time for which children of an ended command may keep its output open, in ms. */
const lingerMs = 1_000

/** The result of a command: its output, or the reason why there is none, in words of the log. */
export type CommandEnd = { text: string } | { why: string }

/**
 * Runs a program without a shell and returns its output. It has a process group of its own, so that children that keep its
 * output open end too: on `stop`, or soon after the program. Its error output is discarded, because it may hold secrets.
 * @param onEnd called once, unless the command was stopped
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

  /** Ends the command and all its children. `onEnd` is not called any more. */
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
