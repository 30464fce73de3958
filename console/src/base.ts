/**
 * The path of the listener, which ends with a slash. The script is at `<base>console/assets/`, even if a proxy serves
 * the listener below another path.
 */
export const base = new URL('../../', import.meta.url).pathname
export const consoleBase = `${base}console/`

/** Returns a value that the server wrote into the page. Tests have no page. */
const wordOf = (name: string) => globalThis.document?.querySelector(`meta[name=${name}]`)?.getAttribute('content')

/** The path of the API, which differs by listener. */
const apiPath = wordOf('api') ?? 'api/v1'
export const apiBase = `${base}${apiPath}`
/** Whether this is the listener of clients, where owners of keys sign in and no operator does. */
export const isForOwners = apiPath !== 'api/v1'
/** Whether people sign in at an identity provider. */
export const hasSignIn = wordOf('sign-in') === 'yes'
