import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../test/support/listen.ts'
import { unpackDebian } from './debian.ts'
import { makeTinyModel } from './model/tiny-model.ts'
import { type ModelServer, programOf } from './model-server.ts'

const packages = [
  'llama.cpp-tools',
  'libllama0',
  'libggml0',
  'libc6',
  'libgcc-s1',
  'libgomp1',
  'libstdc++6',
  'libssl3t64',
  'zlib1g',
  'libzstd1',
]

/** The number of requests that it answers at once. Others wait. */
export const slots = 2

/** Prepares llama.cpp's server from Debian, with the tiny model. @throws Unobtainable */
export async function prepareLlamaCpp(folder: string, mirror: string | undefined): Promise<ModelServer> {
  const unpacked = unpackDebian(folder, packages, mirror)
  const modelPath = join(folder, 'tiny.gguf')
  writeFileSync(modelPath, makeTinyModel())
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const key = 'the-right-key'
  const command = unpacked.command('usr/bin/llama-server', 'llama')
  command.push('-m', modelPath, '--host', '127.0.0.1', '--port', `${port}`, '-c', '16384', '-np', `${slots}`)
  // With one thread and always the likeliest token, a request gets the same answer every time.
  command.push('-t', '1', '--temp', '0', '--no-webui', '--jinja', '--api-key', key)
  return {
    name: 'llama.cpp',
    version: unpacked.versions.get('llama.cpp-tools')!.replace(/^\d+:/, ''),
    about: `The server is from Debian's unstable release. Its model is made by \`servers/model\`: the weights are set by hand, so that the answers
are short and known. Reasoning, tools, grammars, usage and prompt cache are those of the real server.`,
    url,
    key,
    profile: { extends: 'llama-cpp' },
    ...programOf({
      command,
      env: { GGML_BACKEND_PATH: unpacked.path('usr/lib/x86_64-linux-gnu/ggml/backends0/libggml-cpu-x64.so') },
      logPath: join(folder, 'server.log'),
      healthUrl: `${url}/health`,
      startMs: 30_000,
    }),
  }
}
