import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { isJson } from './print.ts'

/** The terminal of the person who is asked. A test passes its own. */
type Terminal = {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stderr: NodeJS.WritableStream
}

/**
 * Asks a person for confirmation, on stderr.
 * @param left the first half of the error if the answer is no: what is unchanged
 * @param cure its second half if nobody can be asked: how to confirm
 * @throws Error with both halves if stdin is no terminal, or with `--json`, because then a program reads the output
 */
export async function confirm(
  command: Command,
  question: string,
  [left, cure]: readonly [left: string, cure: string],
  { stdin, stderr }: Terminal = process,
): Promise<void> {
  if (!stdin.isTTY || isJson(command)) throw new Error(`${left}: ${cure}`)
  const terminal = createInterface({ input: stdin, output: stderr })
  // Ctrl-C and the end of the input count as a no.
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  const answer = await Promise.race([terminal.question(`${question} [y/N] `).catch(() => ''), closed])
  terminal.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error(left)
}
