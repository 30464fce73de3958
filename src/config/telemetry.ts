import { type Config, type OtlpTarget, Secret } from './config.ts'
import type { ConfigProblem } from './problem.ts'
import type { ConfigFile } from './schema.ts'
import { collectorHeaders, endpointMistake, headerMistake } from './values.ts'

/* Targets of traces and metrics, from the file and from OpenTelemetry's variables, which have priority (ruling X4). */

type TelemetrySettings = Config['telemetry']
type Signal = 'traces' | 'metrics'

/** The defaults of OpenTelemetry's SDKs. */
const timeoutMs = 10_000
const queueMax = 2_048

/**
 * Reads the settings. An invalid variable, which may be set for the whole machine, does not prevent the start.
 * @param warnings receives the mistakes in variables, by name
 */
export function readTelemetry(
  file: ConfigFile['telemetry'],
  env: NodeJS.ProcessEnv,
  warnings: ConfigProblem[],
): TelemetrySettings {
  const reader: Reader = { file, env, warn: (name, message) => warn(warnings, name, message) }
  const isOff = env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true'
  return {
    traces: isOff ? undefined : readTarget('traces', reader),
    metrics: isOff ? undefined : readTarget('metrics', reader),
    spansEveryMs: readCount(reader, 'OTEL_BSP_SCHEDULE_DELAY', file.otlp?.interval ?? 5_000),
    metricsEveryMs: readCount(reader, 'OTEL_METRIC_EXPORT_INTERVAL', file.otlp?.metrics_interval ?? 60_000),
    queueMax: readCount(reader, 'OTEL_BSP_MAX_QUEUE_SIZE', queueMax),
    sampleShare: readShare(reader),
    resource: readResource(env),
    genai: file.genai,
    propagate: file.propagate,
  }
}

/** Returns all settings as a text, for comparison. It contains secrets. */
export function spellTelemetry(telemetry: TelemetrySettings): string {
  return JSON.stringify(telemetry, (_, value) =>
    value instanceof Map
      ? [...value].map(([key, one]) => [key, one instanceof Secret ? one.reveal() : one])
      : (value as unknown),
  )
}

type Reader = {
  file: ConfigFile['telemetry']
  env: NodeJS.ProcessEnv
  warn(name: string, message: string): void
}

function warn(warnings: ConfigProblem[], name: string, message: string): void {
  if (!warnings.some(({ path }) => path === name)) warnings.push({ path: name, message: `${name} ${message}` })
}

function readTarget(signal: Signal, reader: Reader): OtlpTarget | undefined {
  const { file, env } = reader
  const upper = signal.toUpperCase()
  if (env[`OTEL_${upper}_EXPORTER`] === 'none') return undefined
  const url = readEndpoint(signal, reader) ?? (file.otlp && withPath(file.otlp.endpoint, signal))
  if (url === undefined) return undefined
  const headers = new Map(
    Object.entries(file.otlp?.headers ?? {}).map(([key, value]) => [key.toLowerCase(), new Secret(value)]),
  )
  for (const variable of ['OTEL_EXPORTER_OTLP_HEADERS', `OTEL_EXPORTER_OTLP_${upper}_HEADERS`])
    for (const [key, value] of readPairs(env[variable])) {
      const mistake = headerMistake(key, value, collectorHeaders)
      if (mistake === undefined) headers.set(key.toLowerCase(), new Secret(value))
      else reader.warn(variable, 'has an invalid header, which is left out')
    }
  const limit = env[`OTEL_EXPORTER_OTLP_${upper}_TIMEOUT`] ? `${upper}_TIMEOUT` : 'TIMEOUT'
  return { url, headers, timeoutMs: readCount(reader, `OTEL_EXPORTER_OTLP_${limit}`, timeoutMs) }
}

/** Returns the endpoint that environment variables set for a signal. */
function readEndpoint(signal: Signal, { env, warn }: Reader): string | undefined {
  const upper = signal.toUpperCase()
  const [own, shared] = [`OTEL_EXPORTER_OTLP_${upper}_ENDPOINT`, 'OTEL_EXPORTER_OTLP_ENDPOINT']
  const name = env[own] ? own : shared
  const said = env[name]
  if (!said) return undefined
  const mistake = endpointMistake(said)
  const protocol = env[`OTEL_EXPORTER_OTLP_${upper}_PROTOCOL`] || env['OTEL_EXPORTER_OTLP_PROTOCOL']
  if (mistake !== undefined) warn(name, `is not used: it ${mistake}`)
  else if (protocol === 'grpc')
    warn(
      name,
      'is not used: it is for gRPC; name the one for OTLP over HTTP, often at port 4318, as telemetry.otlp.endpoint',
    )
  // A variable for one signal contains the complete URL, so no path is added.
  else return name === own ? said : withPath(said, signal)
  return undefined
}

function withPath(base: string, signal: Signal): string {
  return `${base.replace(/\/+$/, '')}/v1/${signal}`
}

/** Reads percent-encoded pairs such as `a=b,c=d`. */
function readPairs(text = ''): [key: string, value: string][] {
  return text.split(',').flatMap((pair): [string, string][] => {
    const at = pair.indexOf('=')
    if (at < 1) return []
    return [[decode(pair.slice(0, at).trim()), decode(pair.slice(at + 1).trim())]]
  })
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function readResource(env: NodeJS.ProcessEnv): ReadonlyMap<string, string> {
  const attributes = new Map(readPairs(env['OTEL_RESOURCE_ATTRIBUTES']))
  if (env['OTEL_SERVICE_NAME']) attributes.set('service.name', env['OTEL_SERVICE_NAME'])
  return attributes
}

/** Returns the share of traces to sample. It applies to traces that begin here, not to traces of callers. */
function readShare({ env, warn }: Reader): number {
  const sampler = (env['OTEL_TRACES_SAMPLER'] || 'always_on').replace(/^parentbased_/, '')
  if (sampler === 'always_off') return 0
  if (sampler !== 'traceidratio') {
    if (sampler !== 'always_on')
      warn('OTEL_TRACES_SAMPLER', 'is not used: it must be always_on, always_off or traceidratio')
    return 1
  }
  const share = Number(env['OTEL_TRACES_SAMPLER_ARG'] || 1)
  if (share >= 0 && share <= 1) return share
  warn('OTEL_TRACES_SAMPLER_ARG', 'is not used: it must be a number from 0 to 1')
  return 1
}

function readCount({ env, warn }: Reader, name: string, otherwise: number): number {
  const text = env[name]
  if (!text) return otherwise
  const value = Number(text)
  if (Number.isInteger(value) && value > 0 && value <= 2 ** 31 - 1) return value
  warn(name, 'is not used: it must be a whole number above 0')
  return otherwise
}
