import { readFileSync } from 'node:fs'

/** What a real server sent, byte by byte. @param name of a file below `test/fixtures/servers/llama-cpp-0.7.0` */
export function llamaCpp(name: string): string {
  return readFileSync(new URL(`../fixtures/servers/llama-cpp-0.7.0/${name}`, import.meta.url), 'utf8')
}
