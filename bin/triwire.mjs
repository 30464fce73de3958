#!/usr/bin/env node
import { launch } from './launch.mjs'

await launch('src/cli/cli.ts', process.argv.slice(2))
