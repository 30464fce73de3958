import { buildConsole } from './console/build.ts'

// npm run console
//
// Builds the web console from `console` into `console/dist`. Files have a digest in their names and are compressed. In
// a checkout, the admin listener runs the build if a source has changed. A package contains the build of `prepack`.

for (const { name, bytes, brotliBytes } of await buildConsole())
  console.log(`${name.padEnd(28)} ${String(bytes).padStart(8)} bytes, ${String(brotliBytes).padStart(7)} compressed`)
