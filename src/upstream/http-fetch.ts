import { Readable } from 'node:stream'
import type { DialRoute } from './dial.ts'
import { HttpWay } from './http-way.ts'
import type { Flight, ResponseHeaders, TransportFault, UpstreamListener } from './target.ts'

/** A request of `fetchHttp`, and how its origin is reached: proxy and trusted certificates. */
export type FetchRequest = DialRoute & {
  /** Default: `GET`. HEAD and CONNECT are not supported. */
  method?: string
  headers?: Readonly<Record<string, string>>
  body?: string | Buffer
  /**
   * Ends the request, or the body that is being read, with the signal's reason. Without a signal, only connecting has a
   * time limit.
   */
  signal?: AbortSignal
}

/** A response of `fetchHttp`. Its body must be read or destroyed, because until then the connection stays open. */
export type FetchResponse = {
  status: number
  ok: boolean
  headers: ResponseHeaders
  /** The bytes of the body as they arrive. If the reader is slow, the server must wait. An early end is an error. */
  body: Readable
  /** Reads the body as UTF-8. @param bytesMax the largest body, in bytes. @throws Error if the body is larger */
  text(bytesMax?: number): Promise<string>
}

/** How long connecting may take, in ms. */
const connectMs = 10_000
const headerBytesMax = 65_536
const textBytesMax = 64 * 1_048_576

/**
 * Sends one HTTP/1.1 request on a connection of its own, as `fetch` would. Redirects are not followed, nothing is
 * decompressed, and the environment's proxy is ignored. The caller names the proxy.
 * @param address an absolute URL of `http` or `https`, without credentials
 * @returns the response when its head has come
 * @throws the error of the system or of TLS with its `code`; `ProxyRefusal`; the signal's reason; an Error for another
 *   kind of address
 */
export async function fetchHttp(address: string | URL, request: FetchRequest = {}): Promise<FetchResponse> {
  const url = new URL(address)
  if (!/^https?:$/.test(url.protocol)) throw new Error(`${url.protocol} is neither http: nor https:`)
  if (url.username || url.password) throw new Error('the address has credentials in it')
  request.signal?.throwIfAborted()
  const exchange = new FetchExchange(request.signal)
  exchange.send(url, request)
  return exchange.response
}

const fixedHeaders = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'triwire' }

class FetchExchange implements UpstreamListener {
  readonly #signal: AbortSignal | undefined
  readonly #response = Promise.withResolvers<FetchResponse>()
  #flight: Flight | undefined
  #isPaused = false
  readonly #body = new Readable({
    read: () => {
      if (!this.#isPaused) return
      this.#isPaused = false
      this.#flight!.resume()
    },
    destroy: (error, done) => {
      this.#flight?.abort()
      this.#signal?.removeEventListener('abort', this.#abort)
      done(error)
    },
  })
  readonly #abort = () => this.#fail(this.#signal!.reason)

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
    signal?.addEventListener('abort', this.#abort, { once: true })
    // Without a listener, Node would throw errors of a body that no one reads.
    this.#body.on('error', () => {})
  }

  get response(): Promise<FetchResponse> {
    return this.#response.promise
  }

  send(url: URL, { method = 'GET', headers = {}, body, signal: _, ...route }: FetchRequest): void {
    const bytes = Buffer.from(body ?? '')
    const lines = new Map<string, string>(Object.entries(fixedHeaders))
    for (const [name, value] of Object.entries(headers)) lines.set(name.toLowerCase(), value)
    if (method !== 'GET' || bytes.length > 0) lines.set('content-length', `${bytes.length}`)
    const terms = {
      ...{ connectMs, headerBytesMax },
      clockMs: () => performance.now(),
      reportBug: (bug: Error) => this.#fail(bug),
      onUnasked() {},
    }
    const way = new HttpWay({ name: url.host, url, route, reuses: false }, terms)
    const path = url.pathname + url.search
    this.#flight = way.send({ method, path, headers: [...lines].flat(), body: bytes, isFresh: true }, this)
  }

  onHead(status: number, _contentType: string, headers: ResponseHeaders): void {
    const body = this.#body
    const text = (bytesMax = textBytesMax) => readText(body, bytesMax)
    this.#response.resolve({ status, ok: status >= 200 && status < 300, headers, body, text })
  }

  onData(chunk: Buffer): void {
    if (this.#body.push(chunk)) return
    this.#isPaused = true
    this.#flight!.pause()
  }

  onEnd(): void {
    this.#body.push(null)
    this.#signal?.removeEventListener('abort', this.#abort)
  }

  onError({ cause }: TransportFault, error = new Error(cause)): void {
    this.#fail(error)
  }

  #fail(error: Error): void {
    this.#response.reject(error)
    this.#body.destroy(error)
  }
}

async function readText(body: Readable, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder()
  let [text, bytes] = ['', 0]
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Error(`the answer is longer than ${bytesMax} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
