import type { Command } from 'commander'
import type { AnsweredRequest } from '../simulator/simulator.ts'
import { type GlobalOptions, numberFrom } from './options.ts'
import { print, unreadable } from './print.ts'

type SimulatorCommandOptions = { port: number; host: string; scripts?: string; quiet?: true }

/** Adds `simulator`, which runs only the simulated upstream until it is stopped. */
export function addSimulatorCommand(program: Command): void {
  program
    .command('simulator')
    .description('run the simulated upstream on all three wires')
    .option('--port <number>', 'the port to listen on; 0 takes any free port', numberFrom(0, 65_535), 0)
    .option('--host <address>', 'the address to listen on', '127.0.0.1')
    .option('--scripts <file>', 'a YAML file of scripted answers')
    .option('--quiet', 'do not write a line for each request to stderr')
    .action(async ({ quiet, ...options }: SimulatorCommandOptions, command: Command) => {
      const { startSimulator } = await import('../simulator/simulator.ts')
      const { json } = command.optsWithGlobals<GlobalOptions>()
      const onAnswered = (request: AnsweredRequest) => console.error(json ? JSON.stringify(request) : describe(request))
      const started = startSimulator({ ...options, ...(!quiet && { onAnswered }) })
      const { url } = await started.catch((error) => {
        throw explain(error, options)
      })
      print(command, { url }, () => url)
    })
}

/** Formats a request as a line such as `POST /v1/messages sim 200 3 ms`. */
function describe({ method, path, model, status, ms, isCut }: AnsweredRequest): string {
  const what = [method, path, model ?? '-', isCut ? `${status || '-'} client left` : status, `${ms} ms`].join(' ')
  // A client can send control characters, which a terminal would obey.
  return what.replace(/[\p{Cc}\p{Cf}]/gu, '').slice(0, 300)
}

const cures: Readonly<Record<string, string>> = {
  EADDRINUSE: 'something listens there already: stop it, or choose another --port (0: any free one)',
  EADDRNOTAVAIL: 'it is not an address of this machine: choose another --host',
  ENOTFOUND: 'there is no such host: choose another --host',
  EACCES: 'this user may not: choose a --port above 1023',
}

function explain(error: NodeJS.ErrnoException, { host, port, scripts }: SimulatorCommandOptions): unknown {
  // A folder can be opened, but the call `read` then fails.
  if (scripts !== undefined && ['open', 'read'].includes(error.syscall ?? ''))
    return unreadable(scripts, error, 'name a file of scripts with --scripts')
  const cure = cures[error.code ?? '']
  return cure ? new Error(`cannot listen on ${host}:${port}: ${cure}`) : error
}
