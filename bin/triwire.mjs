#!/usr/bin/env node
import './signals.mjs'
import { launch } from './launch.mjs'

const args = process.argv.slice(2)
// Agents run `token` before their requests, so it has an entry of its own that loads next to nothing.
const isToken = args[0] === 'token' && args.length <= 2 && !args.some((arg) => arg.startsWith('-'))

await launch(isToken ? 'src/cli/token.ts' : 'src/cli/cli.ts', args, { isProgram: true, takesSignals: !isToken })
