import { buildConsole } from './console/build.ts'

// npm run console
//
// Builds the web console from `console` into `console/dist`: files have a digest in their names and are compressed. In
// a checkout the admin listener builds by itself if a source has changed; a package contains what `prepack` built.

for (const { name, bytes, brotliBytes } of await buildConsole())
  console.log(`${name.padEnd(28)} ${String(bytes).padStart(8)} bytes, ${String(brotliBytes).padStart(7)} compressed`)
