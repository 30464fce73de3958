/*
 * `triwire token [URL]` as agents run it. To be quick, bin/triwire.mjs then loads this module and not the whole
 * program. With options, such as `--help`, it loads the program.
 */
import { printToken } from './login/print-token.ts'

await printToken(process.argv[3])
