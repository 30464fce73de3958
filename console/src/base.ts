/**
 * The path of the console, which ends with a slash. The script is at `<base>console/assets/`, also if a proxy serves
 * the listener below a path of its own.
 */
export const base = new URL('../../', import.meta.url).pathname
export const consoleBase = `${base}console/`
export const apiBase = `${base}api/v1`
