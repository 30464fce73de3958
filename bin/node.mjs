// Runs any script of the checkout with the pinned Node: node bin/node.mjs scripts/check.ts
import './signals.mjs'
import { launch } from './launch.mjs'

await launch(process.argv[2], process.argv.slice(3))
