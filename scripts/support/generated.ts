import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/**
 * Writes a file of the checkout that is made from others. If the command line has `--check`, nothing is written. If the
 * file is then out of date, that is reported, and the process fails.
 * @param name the path from the checkout's root
 * @param make makes the new text from the old text, which is empty if there is no file
 */
export function putGenerated(name: string, make: (old: string) => string): void {
  const file = join(root, name)
  const old = readOld(file)
  const now = make(old)
  if (now === old) return
  if (process.argv.includes('--check')) {
    console.error(`${name} is out of date: run npm run generate`)
    process.exitCode = 1
  } else {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, now)
    console.log(`wrote ${name}`)
  }
}

function readOld(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
