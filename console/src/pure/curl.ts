import { type ClientWire, wirePaths } from './wires.ts'

/**
 * A command that sends a body to the gateway as a client does, with the key as a variable of the shell. The body comes
 * through a pipe, since an argument may have 128 KiB at most on Linux (`MAX_ARG_STRLEN` of execve(2)). `printf` is a
 * builtin of the shells, so that limit does not apply to it.
 * @param url the address at which clients reach the gateway; undefined if unknown: a variable as well
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
