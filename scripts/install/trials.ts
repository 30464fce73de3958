import { fromCheckout } from './checkout.ts'
import { inContainer } from './container.ts'
import { asDependency } from './dependency.ts'
import { asAnotherUser, asService, onMusl } from './elsewhere.ts'
import { byNpx, fromRegistry } from './npx.ts'
import { globally, refused, sameTarball, withoutScripts } from './packed.ts'
import { behindProxy } from './proxy.ts'

/** The trials by name. Each returns lines about what was seen. @throws an Error if it failed, or Unobtainable */
export const trials: Readonly<Record<string, () => Promise<string[]>>> = {
  checkout: fromCheckout,
  tarball: sameTarball,
  'without-scripts': withoutScripts,
  global: globally,
  'old-node': refused,
  dependency: asDependency,
  npx: byNpx,
  registry: fromRegistry,
  user: asAnotherUser,
  proxy: behindProxy,
  musl: onMusl,
  unit: asService,
  image: inContainer,
}
