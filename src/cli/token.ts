/*
 * `triwire token [URL]` as agents run it. Without options, bin/triwire.mjs loads only this module, which is quicker
 * than the whole program.
 */
import { printToken } from './login/print-token.ts'

await printToken(process.argv[3])
