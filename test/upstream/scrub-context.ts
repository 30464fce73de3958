import type { ScrubContext } from '../../src/upstream/scrub.ts'

/** What a text is judged by where nothing of the configuration and of the request is known. */
export const nothing: Omit<ScrubContext, 'modelId' | 'upstreamModels'> = {
  hidden: [],
  ownPaths: [],
  isSent: () => false,
  generic: 'generic',
}
