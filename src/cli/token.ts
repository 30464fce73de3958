/*
 * `triwire token [URL]` as agents run it. If no option is typed, bin/triwire.mjs loads only this module, which is
 * quicker than loading the whole program.
 */
import { printToken } from './login/print-token.ts'

await printToken(process.argv[3])
