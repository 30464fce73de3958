import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { isJson } from './print.ts'

/** Where a person is asked; a test is one. */
export type Terminal = {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stderr: NodeJS.WritableStream
}

/**
 * Asks a person, on stderr.
 * @param left what is so where the answer is no, or none: the beginning of a sentence
 * @param cure how to say yes where nobody can be asked: its end
 * @throws Error with them, also with `--json`: a program reads then
 */
export async function confirm(
  command: Command,
  question: string,
  [left, cure]: readonly [left: string, cure: string],
  { stdin, stderr }: Terminal = process,
): Promise<void> {
  if (!stdin.isTTY || isJson(command)) throw new Error(`${left}: ${cure}`)
  const terminal = createInterface({ input: stdin, output: stderr })
  // Ctrl-C and the end of the input are no.
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')))
  const answer = await Promise.race([terminal.question(`${question} [y/N] `).catch(() => ''), closed])
  terminal.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error(left)
}
