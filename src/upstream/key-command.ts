import { type ChildProcess, spawn } from 'node:child_process'

/** The most that a command may print, in bytes. */
const outputBytesMax = 65_536

/** The time for which children of an ended command may keep its output open, in ms. */
const lingerMs = 1_000

/**
 * The result of a command: its output, or the reason why it has no output, in words of the log.
 * @property said the last line of the command's error output, if the caller asked for this line
 */
export type CommandEnd = ({ text: string } | { why: string }) & { said?: string }

/**
 * Runs a program without a shell and returns its output. The program has its own process group. Children that keep its
 * output open are ended by `stop`, or soon after the program ends.
 * @param onEnd called once, unless the command was stopped
 * @param isHeard whether to read the error output, which may hold secrets
 * @param env variables that the program gets in addition to the environment of the gateway
 */
export function runCommand(
  [program = '', ...args]: readonly string[],
  onEnd: (end: CommandEnd) => void,
  isHeard = false,
  env: Readonly<Record<string, string>> = {},
) {
  let isOver = false
  let isClosed = false
  let linger: NodeJS.Timeout | undefined
  let child: ChildProcess | undefined
  let said = ''
  const end = (what: CommandEnd) => {
    if (isOver) return
    isOver = true
    const last = lastLineOf(said)
    onEnd(last === '' ? what : { ...what, said: last })
  }
  try {
    child = spawn(program, args, {
      stdio: ['ignore', 'pipe', isHeard ? 'pipe' : 'ignore'],
      detached: true,
      windowsHide: true,
      env: { ...process.env, ...env },
    })
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
  child?.stderr?.on('error', () => {})
  child?.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-2 * saidMax)
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
    child?.stderr?.destroy()
    if (child?.pid === undefined || isClosed) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      child.kill('SIGKILL')
    }
  }
}

/** The most characters of a line of error output that are shown. */
const saidMax = 200

/**
 * Returns the last line that is not empty, without control characters and without words that may be keys. A line of one
 * word is left out, because a command may print the key to the wrong output.
 */
function lastLineOf(text: string): string {
  const lines = text.split(/[\r\n]+/).map((line) => line.replaceAll(/\p{C}/gu, ' ').trim())
  const last = lines.findLast((line) => line !== '') ?? ''
  return !last.includes(' ') ? '' : last.replaceAll(/(?=\S*\d)[\w+/=.-]{20,}/g, '…').slice(0, saidMax)
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'it cannot be started'
}
