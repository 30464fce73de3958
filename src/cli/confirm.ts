import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { isJson } from './print.ts'

/** The terminal of the person whom the command asks. A test passes its own. */
type Terminal = {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stderr: NodeJS.WritableStream
}

/**
 * Asks a person for confirmation, on stderr.
 * @param left the error message if the person declines. It says what stays unchanged
 * @param cure the rest of the message if nobody can be asked. It says how to confirm
 * @throws Error if the person declines, if there is no terminal, or if a program uses the command (`--json`)
 */
export async function confirm(
  command: Command,
  question: string,
  [left, cure]: readonly [left: string, cure: string],
  { stdin, stderr }: Terminal = process,
): Promise<void> {
  if (!stdin.isTTY || isJson(command)) throw new Error(`${left}: ${cure}`)
  const terminal = createInterface({ input: stdin, output: stderr })
  // Ctrl-C and the end of the input count as declining.
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  const answer = await Promise.race([terminal.question(`${question} [y/N] `).catch(() => ''), closed])
  terminal.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error(left)
}
