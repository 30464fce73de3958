import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { isJson } from './print.ts'

/**
 * Asks a person, on stderr.
 * @param refusal what is thrown where the answer is no, or nobody can be asked: with `--json` a program reads
 */
export async function confirm(command: Command, question: string, refusal: string): Promise<void> {
  if (!process.stdin.isTTY || isJson(command)) throw new Error(refusal)
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(`${question} [y/N] `)
  terminal.close()
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error(refusal)
}
