import { type ClientWire, wirePaths } from './wires.ts'

/**
 * Returns a command that sends a body to the gateway as a client does, with the key in a shell variable. The body comes
 * through a pipe, because an argument has at most 128 KiB on Linux (`MAX_ARG_STRLEN` of execve(2)). `printf` is a
 * builtin of the shells, so that limit does not apply to it.
 * @param url the address of the gateway for clients; undefined if unknown, and then a shell variable too
 */
export function curlOf(url: string | undefined, wire: ClientWire, body: string): string {
  const root = url === undefined ? '"$TRIWIRE_URL"' : quote(url.replace(/\/(v1\/?)?$/, ''))
  return [
    `printf %s ${quote(body)} |`,
    `  curl -sSN ${root}${wirePaths[wire]} \\`,
    '    -H "authorization: Bearer $TRIWIRE_API_KEY" \\',
    "    -H 'content-type: application/json' \\",
    '    --data-binary @-',
  ].join('\n')
}

/**
 * Quotes a text for a shell: sh, bash, zsh and fish. In single quotes POSIX shells take everything as it is; fish takes
 * a backslash before another one, or before a quote, as an escape. So these characters stand outside the quotes.
 */
function quote(text: string): string {
  return `'${text.replaceAll(/'|\\(?=[\\']|$)/g, (character) => `'\\${character}'`)}'`
}
