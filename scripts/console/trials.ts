import { actTrials } from './trials/acts.ts'
import { awayTrials } from './trials/away.ts'
import { barrierTrials } from './trials/barriers.ts'
import { crowdTrials } from './trials/crowd.ts'
import { figureTrials } from './trials/figures.ts'
import { firstMinutesTrials } from './trials/first-minutes.ts'
import { flowTrials } from './trials/flow.ts'
import { foldingTrials } from './trials/folding.ts'
import { keyboardTrials } from './trials/keyboard.ts'
import { linkTrials } from './trials/link.ts'
import { listTrials } from './trials/lists.ts'
import { loadTrials } from './trials/load.ts'
import { markupTrials } from './trials/markup.ts'
import { needTrials } from './trials/needs.ts'
import { outageTrials } from './trials/outage.ts'
import { ownTrials } from './trials/own.ts'
import { pictureTrials } from './trials/pictures.ts'
import { pixelTrials } from './trials/pixels.ts'
import { playgroundTrials } from './trials/playground.ts'
import { roleTrials } from './trials/roles.ts'
import { signInTrials } from './trials/sign-in.ts'
import { stateTrials } from './trials/states.ts'

export type Trial = {
  name: string
  /** @param asked.pictures a folder for pictures, if any are wanted @returns lines to print @throws if it fails */
  run(asked: { pictures: string | undefined }): Promise<string[] | undefined | void>
}

export const trials: readonly Trial[] = [
  ...flowTrials,
  ...loadTrials,
  ...stateTrials,
  ...foldingTrials,
  ...keyboardTrials,
  ...actTrials,
  ...firstMinutesTrials,
  ...linkTrials,
  ...needTrials,
  ...outageTrials,
  ...playgroundTrials,
  ...figureTrials,
  ...listTrials,
  ...roleTrials,
  ...awayTrials,
  ...ownTrials,
  ...signInTrials,
  ...markupTrials,
  ...pixelTrials,
  ...barrierTrials,
  ...crowdTrials,
  ...pictureTrials,
]
