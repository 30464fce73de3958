/*
 * `triwire token [URL]` as agents run it. bin/triwire.mjs loads this instead of the program, which would load the parser of
 * options. With options, as in `triwire token --help`, the program is.
 */
import { printToken } from './login/print-token.ts'

await printToken(process.argv[3])
