import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { endGroup } from './place.ts'

/** How long a screen is left alone before a key counts as awaited. */
const stillMs = 1_500

export type Sitting = {
  cwd: string
  env: Readonly<Record<string, string>>
  /** What a person types, one after the other, each as soon as the screen stands still. */
  keys: readonly string[]
  /** What is waited for after the last of them. */
  text: RegExp
  /** How long the text is awaited. A minute if it is left out. */
  limitMs?: number
}

/**
 * What a program without arguments shows on a screen of 45 lines of 150: all it wrote, without its colours and moves. It is
 * ended then. The terminal is that of `script` (util-linux).
 * @returns the text that was waited for; empty where it did not come in time
 */
export async function readScreen(
  program: string,
  { cwd, env, keys, text, limitMs = 60_000 }: Sitting,
): Promise<string> {
  const command = 'stty rows 45 cols 150; exec "$SCREEN_PROGRAM"'
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    cwd,
    env: { ...env, TERM: 'xterm-256color', SHELL: '/bin/sh', SCREEN_PROGRAM: program },
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  let [shown, at] = ['', Date.now()]
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    shown += more
    at = Date.now()
  })
  // What it is typed after its end is lost.
  child.stdin.on('error', () => {})
  const limit = Date.now() + limitMs
  const waiting = [...keys]
  try {
    while (Date.now() < limit && child.exitCode === null) {
      await sleep(100)
      const found = waiting.length === 0 && text.exec(plain(shown))
      if (found) return found[0]
      if (shown === '' || waiting.length === 0 || Date.now() - at < stillMs) continue
      child.stdin.write(waiting.shift()!)
      at = Date.now()
    }
    return ''
  } finally {
    endGroup(child)
  }
}

/** Without the sequences that move the cursor, colour and ask the terminal. */
function plain(shown: string): string {
  return shown.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g, '')
}
