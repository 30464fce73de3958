import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'

const root = join(import.meta.dirname, '../..')
const commandSeconds = 90

/**
 * Shell functions for set-up lines. `serving COMMAND` starts a server and waits for it. `simulating` starts a model at
 * `$SIMULATOR`. `ask MODEL [KEY]` makes one request, and puts the request's id into `$REQUEST`.
 */
const prelude = `
set +e
serving() {
  stop_serving
  set -m; "$@" >.server.out 2>.server.err 3>&- & SERVER=$!; set +m
  for _ in $(seq 300); do
    if grep -qE 'listens on|^http' .server.out; then
      cat .server.out
      local key=$(grep -o 'sk-tri-[0-9A-Za-z]*' .server.out | head -1)
      [ -n "$key" ] && export TRIWIRE_KEY=$key
      return 0
    fi
    kill -0 $SERVER 2>/dev/null || { cat .server.out .server.err; return 1; }
    sleep 0.1
  done
  return 1
}
simulating() {
  set -m; triwire simulator --port 0 >.simulator.out 2>/dev/null 3>&- & SIMULATING=$!; set +m
  until grep -q http .simulator.out || ! kill -0 $SIMULATING; do sleep 0.1; done
  export SIMULATOR=$(head -1 .simulator.out)
}
stop_simulating() { [ -n "$SIMULATING" ] && kill -TERM -- -$SIMULATING 2>/dev/null; SIMULATING=; }
stop_serving() { [ -n "$SERVER" ] && kill -INT -- -$SERVER 2>/dev/null && wait $SERVER 2>/dev/null; SERVER=; }
ask() {
  curl -sf "http://$TRIWIRE_LISTEN/v1/chat/completions" -H "authorization: Bearer \${2:-$TRIWIRE_KEY}" "\${@:3}" \\
    -d '{"model":"'"$1"'","messages":[{"role":"user","content":"Why is the sky blue?"}]}' -D .head >/dev/null
  REQUEST=$(sed -n 's/^x-request-id: *\\(req_[0-9a-z]*\\).*/\\1/p' .head)
}
`

/** One reader's shell in a fresh copy of the checkout, with a home, a store and ports of its own. */
export class Session {
  readonly folder: string
  readonly #ports: readonly [number, number]
  readonly #bash: ChildProcess
  readonly #lines: Interface
  #key = 'sk-tri-none'
  #token = 'tri-op-none'
  readonly #reads: [string, string][] = []

  static async open(): Promise<Session> {
    const ports = [await freePort(), await freePort()]
    return new Session(ports as [number, number])
  }

  constructor(ports: readonly [number, number]) {
    this.#ports = ports
    this.folder = mkdtempSync(join(tmpdir(), 'triwire-docs-'))
    const checkout = join(this.folder, 'triwire')
    const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 1e8,
    })
    const folders = new Set<string>()
    for (const file of stdout.split('\0').filter((one) => one && !/^(?:test|site|docs\/console)\//.test(one))) {
      const to = join(checkout, file)
      if (!folders.has(dirname(to))) mkdirSync(dirname(to), { recursive: true })
      folders.add(dirname(to))
      cpSync(join(root, file), to)
    }
    symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
    writeFileSync(join(this.folder, '.curlrc'), 'no-progress-meter\n')
    const bin = join(this.folder, 'bin')
    mkdirSync(bin)
    writeFileSync(join(bin, 'triwire'), `#!/bin/sh\nexec ${process.execPath} ${checkout}/bin/triwire.mjs "$@"\n`, {
      mode: 0o755,
    })
    this.#bash = spawn('bash', ['--norc'], {
      cwd: checkout,
      stdio: ['pipe', 'inherit', 'inherit', 'pipe'],
      env: {
        PATH: `${bin}:${process.env['PATH']}`,
        HOME: this.folder,
        USER: 'reader',
        NODE: process.execPath,
        LANG: 'C.UTF-8',
        TRIWIRE_LISTEN: `127.0.0.1:${ports[0]}`,
        TRIWIRE_ADMIN_LISTEN: `127.0.0.1:${ports[1]}`,
        TRIWIRE_KEY: 'sk-tri-none',
      },
    })
    this.#lines = createInterface({ input: this.#bash.stdio[3] as NodeJS.ReadableStream })
    this.#bash.stdin!.write(prelude)
  }

  /** From now on `to` is typed where a page says `from`. */
  read(from: string, to: string): void {
    this.#reads.unshift([from, to])
  }

  writeFile(name: string, text: string): void {
    const path = join(this.folder, 'triwire', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, this.#typed(text), { mode: 0o600 })
  }

  /** Runs a command in the shell, which keeps variables and folder. @returns its output, as a terminal shows it */
  async run(command: string): Promise<{ exit: number; output: string; typed: string }> {
    const typed = this.#typed(command)
    const isServer =
      /^(?:npm start|npm exec -- triwire serve|triwire serve|triwire simulator|triwire)(?: |$)/.test(typed) &&
      /^(?:npm start|.*\b(?:serve|simulator)\b|triwire *(?:#.*)?$)/.test(typed)
    writeFileSync(join(this.folder, 'command.sh'), `${isServer ? 'serving ' : ''}${typed}\n`)
    const home = this.folder
    this.#bash.stdin!.write(`. '${home}/command.sh' >'${home}/output' 2>&1 </dev/null; echo $? >&3\n`)
    const exit = await new Promise<number>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`no end in ${commandSeconds} s: ${typed}`)),
        commandSeconds * 1_000,
      )
      this.#lines.once('line', (line) => {
        clearTimeout(timer)
        resolve(Number(line))
      })
    })
    const output = readFileSync(join(home, 'output'), 'utf8')
    this.#key = /\bsk-tri-\w{20,}/.exec(output)?.[0] ?? this.#key
    this.#token = output.match(/\btri-op-[\w-]{20,}/g)?.at(-1) ?? this.#token
    return { exit, output, typed }
  }

  async close(): Promise<void> {
    this.#bash.stdin!.end('stop_serving; stop_simulating\nexit\n')
    const timer = setTimeout(() => this.#bash.kill('SIGKILL'), 20_000)
    await new Promise((resolve) => this.#bash.once('exit', resolve))
    clearTimeout(timer)
    this.#lines.close()
    this.#bash.stdio[3]!.destroy()
    rmSync(this.folder, { recursive: true, force: true })
  }

  #typed(text: string): string {
    let result = text
    for (const [from, to] of this.#reads) result = result.replaceAll(from, to)
    return result
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${this.#ports[0]}`)
      .replaceAll('127.0.0.1:8081', `127.0.0.1:${this.#ports[1]}`)
      .replaceAll('npm ci && npm start', 'npm start')
      .replace(/\bsk-tri-(?:…|THEIR-KEY)/g, this.#key)
      .replaceAll('tri-op-…', this.#token)
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
