import { createServer } from 'node:http'
import { atEnd } from './at-end.ts'
import { listen } from './listen.ts'
import { until } from './waiting.ts'

type Attributes = Record<string, unknown>

/** A received span, with its attributes by name. */
export type SeenSpan = {
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attributes
  status: { code?: number } | undefined
}

export type SeenMetric = {
  name: string
  unit: string | undefined
  points: { attributes: Attributes; value: unknown; sum: unknown; count: unknown }[]
}

/** A collector that receives OTLP over HTTP. */
export type Collector = {
  url: string
  /** The received requests. */
  taken: { path: string; body: string; headers: Record<string, string | string[] | undefined> }[]
  /** The status of responses, at first 200. `0`: it never responds. */
  status: number
  asked: number
  spans(): SeenSpan[]
  /** The last value of each metric. */
  metrics(): Map<string, SeenMetric>
  untilSpans(count: number): Promise<SeenSpan[]>
}

export async function startCollector(): Promise<Collector> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      collector.asked++
      if (collector.status === 0) return
      if (collector.status === 200) collector.taken.push({ path: request.url!, body, headers: request.headers })
      response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}')
    })
  })
  const port = await listen(server)
  const collector: Collector = {
    url: `http://127.0.0.1:${port}`,
    taken: [],
    status: 200,
    asked: 0,
    spans: () => of('/v1/traces').flatMap(readSpans),
    metrics: () =>
      new Map(
        of('/v1/metrics')
          .flatMap(readMetrics)
          .map((metric) => [metric.name, metric]),
      ),
    async untilSpans(count) {
      await until(() => collector.spans().length >= count, `${count} spans have come`)
      return collector.spans()
    },
  }
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return collector

  function of(path: string): string[] {
    return collector.taken.filter((one) => one.path === path).map(({ body }) => body)
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the test checks the shape of this JSON
type Any = any

function readSpans(body: string): SeenSpan[] {
  return (JSON.parse(body) as Any).resourceSpans
    .flatMap(({ scopeSpans }: Any) => scopeSpans)
    .flatMap(({ spans }: Any) => spans)
    .map((span: Any) => ({ ...span, attributes: readAttributes(span.attributes) }))
}

function readMetrics(body: string): SeenMetric[] {
  return (JSON.parse(body) as Any).resourceMetrics
    .flatMap(({ scopeMetrics }: Any) => scopeMetrics)
    .flatMap(({ metrics }: Any) => metrics)
    .map(({ name, unit, sum, gauge, histogram }: Any) => ({
      name,
      unit,
      points: (sum ?? gauge ?? histogram).dataPoints.map((point: Any) => ({
        attributes: readAttributes(point.attributes),
        value: point.asDouble,
        sum: point.sum,
        count: point.count,
      })),
    }))
}

export function readAttributes(attributes: Any): Attributes {
  return Object.fromEntries(attributes.map(({ key, value }: Any) => [key, readValue(value)]))
}

function readValue(value: Any): unknown {
  if (value.intValue !== undefined) return Number(value.intValue)
  if (value.arrayValue !== undefined) return value.arrayValue.values.map(readValue)
  return value.stringValue ?? value.doubleValue ?? value.boolValue
}
