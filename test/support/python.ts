import { spawnSync } from 'node:child_process'

/** A Python that has OpenTelemetry's protocol definitions: `TRIWIRE_TEST_PYTHON`, else the one on the path. */
const python = process.env['TRIWIRE_TEST_PYTHON'] ?? 'python3'

/** For `skip` of a test. Where a Python is named nothing is skipped. @returns why there is none. */
export function withoutProtocol(): string | false {
  if (process.env['TRIWIRE_TEST_PYTHON']) return false
  const { status } = spawnSync(python, ['-c', 'import opentelemetry.proto.collector.trace.v1.trace_service_pb2'])
  if (status === 0) return false
  return 'no Python has opentelemetry-proto (pip install opentelemetry-proto; name it in TRIWIRE_TEST_PYTHON): nothing is shown of what collectors read'
}

/** Runs a script with lines on its stdin. @returns the lines it printed @throws what it said on stderr */
export function runPython(script: string, lines: readonly string[]): string[] {
  const { status, stdout, stderr } = spawnSync(python, [script], { input: lines.join('\n'), encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout.trim().split('\n')
}
