import type { Command } from 'commander'
import { asObject } from '../json.ts'
import { originOf } from './origin.ts'
import { formatTable, print } from './print.ts'
import type { Finding } from './probes.ts'

/** `doctor`: probes a running gateway as clients would (text, stream, tools, reasoning, cache, errors), on every wire. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('ask a running gateway as clients do, on every wire, and say what they would stumble over')
    .requiredOption('--key <key>', 'API key of an account with credit: the probes are billed')
    .option('--model <id>', 'default: the first that the gateway lists')
    .option('--base-url <url>', 'of any gateway (default: where the configured one listens)')
    .action(async (options: { key: string; model?: string; baseUrl?: string }, command: Command) => {
      const origin = await readOrigin(options.baseUrl, command)
      const model = options.model ?? (await firstModel(origin))
      const { probe } = await import('./probes.ts')
      const findings: Finding[] = []
      for await (const finding of probe({ origin, key: options.key, model })) findings.push(finding)
      const isHealthy = findings.every(({ result }) => result !== 'failed')
      print(command, { ok: isHealthy, base_url: origin, model, findings: findings.map(toRow) }, () =>
        describe(origin, model, findings),
      )
      if (!isHealthy) process.exitCode = 1
    })
}

async function readOrigin(given: string | undefined, command: Command): Promise<string> {
  if (given) return given.replace(/\/+(v1\/*)?$/, '')
  const { loadConfig } = await import('../config/load.ts')
  return originOf(loadConfig(command.optsWithGlobals()).listen)
}

async function firstModel(origin: string): Promise<string> {
  const response = await fetch(`${origin}/v1/models`, { signal: AbortSignal.timeout(10_000) }).catch((error) => {
    throw new Error(`${origin} cannot be reached: ${error.cause?.message ?? error.message}`)
  })
  const data = asObject(await response.json().catch(() => undefined))?.['data']
  const id = asObject(Array.isArray(data) ? data[0] : undefined)?.['id']
  if (typeof id !== 'string') throw new Error(`${origin}/v1/models lists no model: name one with --model`)
  return id
}

function toRow({ wire, probe, result, firstByteMs, totalMs, detail }: Finding) {
  return { wire, probe, result, first_byte_ms: firstByteMs, total_ms: totalMs, detail }
}

function describe(origin: string, model: string, findings: readonly Finding[]): string {
  const rows = findings.map(({ wire, probe, result, firstByteMs, totalMs, detail }) => {
    return [wire, probe, result, String(firstByteMs), String(totalMs), detail]
  })
  const failed = findings.filter(({ result }) => result === 'failed').length
  const verdict = failed === 0 ? 'all is well' : `${failed} of ${findings.length} probes failed`
  const table = formatTable(['wire', 'probe', 'result', 'first byte ms', 'total ms', 'detail'], rows)
  return `${origin}, model ${model}\n\n${table}\n\n${verdict}`
}
