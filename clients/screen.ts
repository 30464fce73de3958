import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { endGroup } from './place.ts'

/** A program counts as waiting for a key when its screen has not changed for this long. */
const stillMs = 1_500

export type Sitting = {
  cwd: string
  env: Readonly<Record<string, string>>
  /** The keys to press, one after the other, each as soon as the screen no longer changes. */
  keys: readonly string[]
  /** The text to wait for after the last key. */
  text: RegExp
  /** The time limit for the keys and the text together. Default: a minute. */
  limitMs?: number
}

/**
 * Runs a program without arguments in a terminal of 45 lines and 150 columns, presses keys, and waits for a text. Then
 * the program is killed. The terminal comes from `script` (util-linux).
 * @returns the text that matched; empty if it did not appear in time
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
  // A key that is pressed after the program's end is lost.
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

/** Removes the escape sequences that move the cursor, set colours or query the terminal. */
function plain(shown: string): string {
  return shown.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g, '')
}
