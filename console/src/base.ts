/**
 * Where the console is: the script lies in `<base>console/assets/`, also where a proxy has put the listener below a path of
 * its own. Ends with a slash.
 */
export const base = new URL('../../', import.meta.url).pathname
export const consoleBase = `${base}console/`
export const apiBase = `${base}api/v1`
