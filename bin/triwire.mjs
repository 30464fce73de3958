#!/usr/bin/env node
import './signals.mjs'
import { launch } from './launch.mjs'

await launch('src/cli/cli.ts', process.argv.slice(2), { isProgram: true })
