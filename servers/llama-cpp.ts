import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../test/support/listen.ts'
import { unpackDebian } from './debian.ts'
import { makeTinyModel } from './model/tiny-model.ts'

/** A model server under our hands. */
export type ModelServer = {
  name: string
  version: string
  url: string
  /** The key it asks for. */
  key: string
  /** Waits until it answers. */
  start(): Promise<void>
  signal(signal: NodeJS.Signals): void
  /** Ends it, and waits for that. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

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

/** How many requests it works on at once; more wait. */
export const slots = 2

/** llama.cpp's server from Debian, serving the tiny model. @throws Unobtainable */
export async function prepareLlamaCpp(folder: string, mirror: string | undefined): Promise<ModelServer> {
  const unpacked = unpackDebian(folder, packages, mirror)
  const modelPath = join(folder, 'tiny.gguf')
  writeFileSync(modelPath, makeTinyModel())
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const key = 'the-right-key'
  const [program, ...args] = unpacked.command('usr/bin/llama-server', 'llama')
  args.push('-m', modelPath, '--host', '127.0.0.1', '--port', `${port}`, '-c', '16384', '-np', `${slots}`)
  // One thread, and always the likeliest token: the same answer every time.
  args.push('-t', '1', '--temp', '0', '--no-webui', '--jinja', '--api-key', key)
  const env = {
    ...process.env,
    GGML_BACKEND_PATH: unpacked.path('usr/lib/x86_64-linux-gnu/ggml/backends0/libggml-cpu-x64.so'),
  }
  let child: ChildProcess | undefined
  return {
    name: 'llama.cpp',
    version: unpacked.versions.get('llama.cpp-tools')!.replace(/^\d+:/, ''),
    url,
    key,
    async start() {
      const log = openSync(join(folder, 'server.log'), 'a')
      child = spawn(program!, args, { env, stdio: ['ignore', log, log] })
      closeSync(log)
      await untilUp(url, child)
    },
    signal: (signal) => void child?.kill(signal),
    async stop(signal = 'SIGKILL') {
      if (!child || child.exitCode !== null || child.signalCode !== null) return
      child.kill(signal)
      await once(child, 'exit')
    },
  }
}

async function untilUp(url: string, child: ChildProcess): Promise<void> {
  for (const startedMs = performance.now(); performance.now() - startedMs < 30_000; await pause(50)) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}; see server.log`)
    const answer = await fetch(`${url}/health`).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.ok) return
  }
  throw new Error('the server does not answer')
}
