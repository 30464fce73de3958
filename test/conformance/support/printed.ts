import { readFileSync } from 'node:fs'

/** Reads what the suite has to print, from a file of test/conformance/printed. Change it by hand with what is printed. */
export function readPrinted(name: string): string {
  return readFileSync(new URL(`../printed/${name}`, import.meta.url), 'utf8')
}
