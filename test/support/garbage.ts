import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

/** Collects all that nothing holds, of the heap of this thread. */
export const collect = runInNewContext('gc') as () => void
