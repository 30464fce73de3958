/** A browser that signs in. It keeps cookies by host, for all ports, follows redirects, and sends its origin. */
export class TestBrowser {
  readonly #cookies = new Map<string, Map<string, string>>()
  /** Headers of every request. Those of a request have priority. */
  headers: Record<string, string> = {}

  /** Opens an address. @property from the page of the link or form; an empty text if the person typed the address */
  async go(address: string | URL, options: BrowserOptions = {}): Promise<Visit> {
    let url = new URL(address)
    let { method = 'GET', form } = options
    const { from = '', headers = {}, until } = options
    const site = siteOf(from, url)
    for (let hops = 0; hops < 12; hops++) {
      const body = form && new URLSearchParams(form).toString()
      const response = await fetch(url, {
        method,
        redirect: 'manual',
        headers: {
          ...{ 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate', accept: 'text/html' },
          ...(method === 'POST' && { origin: from === '' ? 'null' : new URL(from).origin }),
          ...(body !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
          cookie: [...this.#jar(url)].map(([name, value]) => `${name}=${value}`).join('; '),
          ...this.headers,
          ...headers,
        },
        ...(body !== undefined && { body }),
      })
      for (const line of response.headers.getSetCookie()) this.#keep(url, line)
      const location = response.headers.get('location')
      const next = location === null ? undefined : new URL(location, url)
      if (!next || until?.(next))
        return { url, next, status: response.status, headers: response.headers, text: await response.text() }
      await response.body?.cancel()
      url = next
      method = 'GET'
      form = undefined
    }
    throw new Error(`too many redirects, the last to ${url}`)
  }

  /** Presses a button of a form in a page. */
  press(
    page: Visit,
    action: string,
    options: BrowserOptions & { fields?: Record<string, string> } = {},
  ): Promise<Visit> {
    const hidden = page.text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)
    const fields = Object.fromEntries([...hidden].map(([, name, value]) => [name!, readEscapes(value!)]))
    const target = new URL(/<form method="post" action="([^"]+)"/.exec(page.text)?.[1] ?? '', page.url)
    return this.go(target, {
      from: page.url.href,
      ...options,
      method: 'POST',
      form: { ...fields, action, ...options.fields },
    })
  }

  /** Follows the link with this text. */
  follow(page: Visit, words: string, options: BrowserOptions = {}): Promise<Visit> {
    const link = [...page.text.matchAll(/<a [^>]*href="([^"]+)"[^>]*>([^<]*)<\/a>/g)].find(
      ([, , text]) => text === words,
    )
    if (!link) throw new Error(`no link "${words}" in ${page.text}`)
    return this.go(new URL(readEscapes(link[1]!), page.url), { from: page.url.href, ...options })
  }

  cookies(origin: string): ReadonlyMap<string, string> {
    return this.#jar(new URL(origin))
  }

  #jar({ hostname }: URL): Map<string, string> {
    const jar = this.#cookies.get(hostname) ?? new Map<string, string>()
    this.#cookies.set(hostname, jar)
    return jar
  }

  #keep(url: URL, line: string): void {
    const [pair = '', ...attributes] = line.split(/;\s*/)
    const at = pair.indexOf('=')
    const isOver = attributes.some((one) => /^max-age=0$/i.test(one))
    if (isOver) this.#jar(url).delete(pair.slice(0, at))
    else this.#jar(url).set(pair.slice(0, at), pair.slice(at + 1))
  }
}

export type BrowserOptions = {
  method?: string
  form?: Record<string, string> | undefined
  from?: string
  headers?: Record<string, string>
  /** Redirects to matching addresses are not followed. */
  until?: (next: URL) => boolean
}

/** A visited page. @property next the address of a redirect that was not followed */
export type Visit = { url: URL; next: URL | undefined; status: number; headers: Headers; text: string }

function siteOf(from: string, to: URL): string {
  if (from === '') return 'none'
  return new URL(from).origin === to.origin ? 'same-origin' : 'cross-site'
}

function readEscapes(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))).replaceAll('&amp;', '&')
}
