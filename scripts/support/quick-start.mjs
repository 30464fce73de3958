// Plain JavaScript: tests start other releases of Node too, and those have no such hooks.
import module from 'node:module'

/*
 * scripts/test.ts loads this into every process and thread of the tests, because loading modules is most of what their starts
 * cost. The program and its threads start from bundles, as in the package (ruling X8). All other sources import each other by
 * paths that need no search. A process that sets NODE_OPTIONS itself runs the sources without this.
 */

const root = new URL('../../', import.meta.url).href
const source = `${root}src/`
/** @type {Record<string, string>} Bundles by the modules below `src` that they stand for; none outside of `npm test`. */
const bundles = JSON.parse(process.env.TRIWIRE_TEST_BUNDLES ?? '{}')

const formats = { '.ts': 'module-typescript', '.mjs': 'module' }

module.registerHooks?.({
  resolve(specifier, context, next) {
    const bundled = specifier.startsWith(source) && bundles[specifier.slice(source.length)]
    if (bundled) return { url: bundled, format: 'module', shortCircuit: true }
    const format = specifier.startsWith('.') && formats[specifier.slice(specifier.lastIndexOf('.'))]
    if (!format || !context.parentURL?.startsWith(root)) return next(specifier, context)
    return { url: new URL(specifier, context.parentURL).href, format, shortCircuit: true }
  },
})
