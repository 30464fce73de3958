import { readFileSync } from 'node:fs'

/** Returns the recorded bytes of a real server. @param name a file in its folder of `test/fixtures/servers` */
export const llamaCpp = (name: string) => read('llama-cpp-0.7.0', name)
export const liteLlm = (name: string) => read('litellm-1.109.1', name)

function read(server: string, name: string): string {
  return readFileSync(new URL(`../fixtures/servers/${server}/${name}`, import.meta.url), 'utf8')
}
