import { createHash } from 'node:crypto'
import type { ApiAnswer } from '../admin/answer.ts'
import { guardHeaders } from '../admin/guard.ts'

/* Pages for people who sign in: HTML without scripts, in the style of the console. */

/** A piece of HTML, in which all texts are escaped. */
export type Html = { html: string }

/** Makes HTML from a template. Values are escaped unless they are `Html`; an undefined value adds nothing. */
export function html(parts: TemplateStringsArray, ...values: (string | Html | readonly Html[] | undefined)[]): Html {
  return { html: parts.map((part, at) => part + (at < values.length ? show(values[at]) : '')).join('') }
}

function show(value: string | Html | readonly Html[] | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return value.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
  return 'html' in value ? value.html : value.map(show).join('')
}

type PageParts = {
  status?: number
  title: string
  /** HTML below the title. */
  body: Html
  /** Origins of other sites to which a form of this page, or the response to the form, may lead. */
  formTargets?: readonly string[]
  headers?: Readonly<Record<string, string>>
}

/** Makes a page that must not be cached or framed, and in which no script can run. */
export function formPage({ status = 200, title, body, formTargets = [], headers = {} }: PageParts): ApiAnswer {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} – triwire</title>
<style>${{ html: style }}</style>
</head>
<body>
<main>
<p class="brand">${{ html: logo }} <span>triwire</span></p>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`
  const policy = [
    ...["default-src 'none'", `style-src '${styleDigest}'`, "frame-ancestors 'none'", "base-uri 'none'"],
    ['form-action', "'self'", ...formTargets].join(' '),
  ]
  return {
    status,
    headers: {
      ...pageHeaders,
      'content-security-policy': policy.join('; '),
      'content-type': 'text/html; charset=utf-8',
      ...headers,
    },
    body: page.html,
  }
}

/** Adds a link at the end of a page. */
export function addLink(page: ApiAnswer, address: string, words: string): ApiAnswer {
  const link = html`<p><a href="${address}">${words}</a></p>`
  return { ...page, body: `${page.body}`.replace('</main>', () => `${link.html}</main>`) }
}

/** Redirects the browser, which then sends a GET. */
export function redirect(location: string, headers: Readonly<Record<string, string>> = {}): ApiAnswer {
  return { status: 303, headers: { ...pageHeaders, location, ...headers } }
}

/** The headers of all sign-in pages. They forbid frames, caching and the referrer (RFC 9700 §4.2, §4.16). */
const pageHeaders = { ...guardHeaders, 'x-frame-options': 'DENY' }

const logo =
  '<svg viewBox="0 0 22 22" width="22" height="22" fill="none" stroke-width="2.4" stroke-linecap="round" aria-hidden="true"><path stroke="#3583ed" d="M2 4h5c4 0 4 7 8 7h5"/><path stroke="#6f757b" d="M2 11h18"/><path stroke="#dc5e2f" d="M2 18h5c4 0 4-7 8-7h5"/></svg>'

/** The style of the pages. Colours are those of console/style/colours.css. */
const style = `
:root{color-scheme:light dark;--bg:light-dark(#f5f6f7,#0d1012);--panel:light-dark(#fff,#14181b);--line:light-dark(#dde1e4,#2b3137);--edge:light-dark(#878f96,#6f7a83);--text:light-dark(#14181b,#e7eaec);--muted:light-dark(#576068,#9fa8af);--accent:light-dark(#1d5fc9,#7fabff);--onaccent:light-dark(#fff,#0d1012);--bad:light-dark(#b3261e,#ff8577)}
*{box-sizing:border-box}
html{background:var(--bg);color:var(--text);font:16px/24px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Liberation Sans",Arial,sans-serif;-webkit-text-size-adjust:100%}
body{margin:0;padding:16px;min-height:100vh;display:grid;place-items:center}
main{width:100%;max-width:460px;padding:20px 24px 24px;border:1px solid var(--line);border-radius:8px;background:var(--panel);overflow-wrap:anywhere}
h1{margin:12px 0 8px;font-size:20px;line-height:28px;font-weight:650}
p{margin:0 0 12px}
.brand{display:flex;align-items:center;gap:8px;font-weight:650}
.muted{color:var(--muted)}
.code{font:600 26px/36px ui-monospace,"SF Mono","DejaVu Sans Mono",Menlo,monospace;letter-spacing:.06em;text-align:center;padding:10px;border:1px solid var(--line);border-radius:6px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:0 0 16px}
dt{color:var(--muted)}
dd{margin:0}
form{margin:0}
.acts{display:flex;flex-wrap:wrap;gap:10px;margin-top:16px}
label{display:block;font-weight:560;margin-bottom:4px}
input[type=text]{font:inherit;width:100%;min-height:44px;padding:8px 12px;border:1px solid var(--edge);border-radius:6px;background:var(--panel);color:inherit;text-transform:uppercase}
button,.button{font:inherit;font-weight:560;display:inline-flex;align-items:center;justify-content:center;min-height:44px;padding:8px 18px;border:1px solid var(--edge);border-radius:6px;background:var(--panel);color:var(--text);cursor:pointer;text-decoration:none}
.primary{border-color:var(--accent);background:var(--accent);color:var(--onaccent)}
a{color:var(--accent)}
a.primary{color:var(--onaccent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media(max-width:380px){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:6px}.acts>*{width:100%}}
`

const styleDigest = `sha256-${createHash('sha256').update(style).digest('base64')}`
