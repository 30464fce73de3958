#!/usr/bin/env node
// The programs are TypeScript, from which Node takes the types; it does not do so below node_modules.
const isInstalled = import.meta.url.includes('/node_modules/')
if (!process.features.typescript || isInstalled) {
  console.error(
    isInstalled
      ? 'bothsides runs from a checkout or an unpacked archive, not from node_modules.'
      : `bothsides needs Node.js 22.18 or later; this is ${process.versions.node}.`,
  )
  process.exit(2)
}
await import('../src/cli.ts')
