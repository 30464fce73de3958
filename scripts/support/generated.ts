import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/**
 * Writes a file of the checkout that follows from others. With `--check` on the command line it is only looked at, and where it is
 * out of date that is said and the process fails.
 * @param name from the checkout's root
 * @param make from what is in it, empty where there is none
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
