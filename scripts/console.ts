import { buildConsole } from './console/build.ts'

// npm run console
//
// Builds the web console from `console` into `console/dist`: names that say what is in a file, and each compressed. The admin
// listener of a checkout does this by itself where a source has changed; a package brings what `prepack` built.

for (const { name, bytes, brotliBytes } of await buildConsole())
  console.log(`${name.padEnd(28)} ${String(bytes).padStart(8)} bytes, ${String(brotliBytes).padStart(7)} compressed`)
