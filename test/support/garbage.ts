import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')

/** Runs a full garbage collection of this thread's heap. */
export const collect = runInNewContext('gc') as () => void
