import type { ApiAnswer } from '../admin/answer.ts'
import { formPage, type Html, html } from './page.ts'

/** The names of programs as pages show them, by the names that the programs send. */
const programs = new Map([
  ['claude_code', 'Claude Code'],
  ['triwire', 'triwire login'],
])

function nameProgram(agent: string | undefined): string {
  return agent === undefined ? 'a program that does not say its name' : (programs.get(agent) ?? agent)
}

/** The status, title and text of pages without a form. Each text says what to do. */
const notes = {
  approved: [
    200,
    'You are signed in',
    'Go back to your program. It goes on by itself within seconds. This page can be closed.',
  ],
  denied: [
    200,
    'Nothing was signed in',
    'The sign-in was refused. If you did not begin it, somebody may have sent you a link: tell the operator of this gateway.',
  ],
  signed_out: [200, 'You are signed out', 'Your session at this gateway has ended.'],
  late: [
    400,
    'This took too long',
    'The sign-in has expired, or this page was loaded again. Start again in your program or at the page where you began.',
  ],
  other_browser: [
    400,
    'Another browser',
    'This sign-in was begun in another browser, this page was loaded again, or another sign-in was begun in this browser since. Nothing was signed in. Finish one sign-in before you begin the next, in the browser where you began.',
  ],
  cross_site: [
    403,
    'Not from here',
    'This request came from a page of another site, or from a browser that does not say where it came from. Nothing was changed. Open the address that your program shows, in a current browser.',
  ],
  used: [
    409,
    'This code was used already',
    'A code is for one sign-in. Start again in your program: it shows another one.',
  ],
  throttled: [
    429,
    'Too many wrong codes',
    'Your network has sent too many codes that do not exist. Wait ten minutes and try again.',
  ],
  declined: [
    403,
    'Your company did not sign you in',
    'Its sign-in page was left, or it refused. Nothing was signed in. Try again, or ask the people who run sign-in at your company.',
  ],
  unreachable: [
    503,
    'Your company does not answer',
    'The sign-in of your company cannot be reached, or refuses this gateway. Nothing was signed in. Try again in a minute; the log of the gateway has the reason. Sessions that run go on.',
  ],
  invalid: [
    502,
    'The answer cannot be trusted',
    'What the sign-in of your company sent does not fit this attempt. Nothing was signed in. Start again; if it happens again, tell the operator of this gateway: its log has the reason.',
  ],
  misdirected: [421, 'Another address', 'This gateway has another address. Open the one that your program shows.'],
  redirect: [
    400,
    'This is not a program of this machine',
    'The answer to this sign-in would go to an address that is not http://127.0.0.1 or http://[::1] with a port. Nothing was sent there. Update the program, or sign it in by a code.',
  ],
  form: [400, 'This request is not complete', 'Something is missing in it. Start again in your program.'],
} as const satisfies Record<string, readonly [number, string, string]>

export type NoteName = keyof typeof notes

/** Makes a page without a form, from the text with this name. @param more HTML below the text */
export function notePage(name: NoteName, more?: Html, headers: Readonly<Record<string, string>> = {}): ApiAnswer {
  const [status, title, text] = notes[name]
  return formPage({ status, title, headers, body: html`<p>${text}</p>${more}` })
}

/** Makes the page after a sign-out. @param there the URL that ends the provider's session, if it has one */
export function signedOutPage(there?: string, headers?: Readonly<Record<string, string>>): ApiAnswer {
  const provider = there && html`<p><a href="${there}">Sign out at your company as well</a></p>`
  return notePage('signed_out', html`${provider || undefined}<p><a href="./">Sign in again</a></p>`, headers)
}

/** Makes the page that tells a person why they may not sign in, and whom to ask. */
export function refusalPage(why: string, who: string): ApiAnswer {
  const body = html`<p>You signed in as ${who}, but you may not use this gateway yet.</p>
<p>${why}</p>
<p>Show this page to the operator of this gateway. They add your group to the rules of <code>sign_in</code>; then start again.</p>`
  return formPage({ status: 403, title: 'No access yet', body })
}

/** Makes the page that asks for a code. @param wrong the typed code, if it does not exist */
export function codePage(wrong?: string): ApiAnswer {
  const body = html`${wrong === undefined ? undefined : html`<p role="alert">The code ${wrong} is unknown or has expired. Compare it with the one that your program shows, or start again there.</p>`}
<form method="get" action="device">
<label for="code">Code that your program shows</label>
<input type="text" id="code" name="user_code" required maxlength="20" autocomplete="off" autocapitalize="characters" spellcheck="false" placeholder="XXXX-XXXX">
<div class="acts"><button class="primary">Go on</button></div>
</form>`
  return formPage({ status: wrong === undefined ? 200 : 404, title: 'Sign in a program', body })
}

/** A program's sign-in that waits for approval. */
type Waiting = {
  /** The formatted code, `XXXX-XXXX`. Undefined for a program on the same machine. */
  code: string | undefined
  agent: string | undefined
  address: string | undefined
  createdMs: number
}

function describe({ agent, address, createdMs }: Waiting, nowMs: number, who: readonly Html[] = []): Html {
  const seconds = Math.max(0, Math.round((nowMs - createdMs) / 1_000))
  const when = seconds < 120 ? `${seconds} seconds ago` : `${Math.round(seconds / 60)} minutes ago`
  return html`<dl>
${who}<dt>Program</dt><dd>${nameProgram(agent)}</dd>
<dt>Asked from</dt><dd>${address ?? 'an unknown address'}</dd>
<dt>Asked</dt><dd>${when} (${new Date(createdMs).toISOString().slice(0, 19).replace('T', ' ')} UTC)</dd>
</dl>`
}

const warnings = {
  code: html`<p><strong>Only continue if it matches your device</strong>, and if you began this yourself. A person who sends you a link with a code wants to use the gateway in your name.</p>`,
  loopback: html`<p><strong>Only continue if you began this yourself</strong>, on this machine. A person who sends you a link to this page wants to use the gateway in your name.</p>`,
}

/**
 * Makes the first page of a sign-in by code. It shows the request and the code. After the sign-in, the person sees the
 * second page (see `approvePage`).
 */
export function askPage(waiting: Waiting, nowMs: number, providerOrigin: string | undefined): ApiAnswer {
  const code = waiting.code ?? ''
  const body = html`<p>A program asks to use this gateway in your name. It shows this code:</p>
<p class="code">${code}</p>
${warnings.code}
${describe(waiting, nowMs)}
<form method="post" action="device">
<input type="hidden" name="user_code" value="${code}">
<div class="acts"><a class="button primary" href="device?user_code=${encodeURIComponent(code)}&amp;continue=yes">Continue</a>
<button name="action" value="deny">Deny</button></div>
</form>`
  const formTargets = providerOrigin === undefined ? [] : [providerOrigin]
  return formPage({ title: 'Sign in a program', body, formTargets })
}

/** @property hidden the hidden fields of the form */
type Approval = {
  who: string
  account: string
  hidden: Readonly<Record<string, string>>
  formTargets: readonly string[]
}

/** Makes the second page of a sign-in. The page shows who will be signed in, and asks for approval. */
export function approvePage(
  waiting: Waiting,
  nowMs: number,
  { who, account, hidden, formTargets }: Approval,
  headers: Readonly<Record<string, string>>,
): ApiAnswer {
  const fields = Object.entries(hidden).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  const person = [
    html`<dt>You are</dt><dd><strong>${who}</strong></dd>
<dt>Paid by</dt><dd>${account}</dd>
`,
  ]
  const body = html`<p>This program is about to use the gateway in your name:</p>
${waiting.code === undefined ? undefined : html`<p class="code">${waiting.code}</p>`}
${waiting.code === undefined ? warnings.loopback : warnings.code}
${describe(waiting, nowMs, person)}
<form method="post" action="device">${fields}
<div class="acts"><button class="primary" name="action" value="approve">Approve</button>
<button name="action" value="deny">Deny</button></div>
</form>`
  return formPage({ title: 'Is this you?', body, formTargets, headers })
}

/** Makes the page for a refusal by the store, for example if the account that a sign-in rule names does not exist. */
export function problemPage(status: number, text: string): ApiAnswer {
  const body = html`<p>${text}</p><p>Nothing was signed in. Show this page to the operator of this gateway.</p>`
  return formPage({ status, title: 'The gateway cannot sign you in', body })
}
