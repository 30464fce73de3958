import { asObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { noteAnswer } from '../../inference/usage.ts'
import { brokenFault } from '../answers/faults.ts'
import { headValues, isBelieved, type NativeHead, openAnswer } from '../answers/native-answer.ts'
import { estimateTexts } from '../answers/produced-text.ts'
import { objectsOf } from '../answers/read-answer.ts'
import type { WholeAnswer } from '../answers/relay.ts'
import { type NamedCalls, producedTexts } from './produced.ts'
import { decodeUsage, encodeUsage, holdsMoreThanTokens, tellUsage, wantedUsage } from './usage.ts'

/** A chat model's whole answer for a chat client (ruling P2). */
export function readAnswer(body: Buffer, head: NativeHead): WholeAnswer {
  const opened = openAnswer(body)
  if (opened.state === 'failed') return opened
  const { patch } = opened
  const answer = patch.value
  const choices = answer['choices']
  if (!Array.isArray(choices) || choices.length === 0) {
    return { state: 'failed', fault: brokenFault('the answer has no choices') }
  }
  const usage = asObject(answer['usage'])
  const { usageQuirk, chat } = head.model.profile
  const report = noteAnswer(decodeUsage(usage ?? asObject(choices[0])?.['usage'], usageQuirk), answer)
  return {
    state: 'finished',
    report,
    estimateOutput: (enough) => estimateTexts(textsOf(choices, chat.reasoningField), enough),
    encode: (billed) => {
      patch.set([], headValues(head, answer, 'chatcmpl-'))
      const counters = encodeUsage(billed)
      const isKept = isBelieved(report, billed, usage, wantedUsage(counters))
      if (usage && holdsMoreThanTokens(usage))
        patch.set([], new Map([['usage', JSON.stringify(tellUsage(usage, counters, isKept))]]))
      else patch.setMissing(['usage'], usage ? wantedUsage(counters) : counters, isKept)
      return patch.result()
    },
  }
}

function textsOf(choices: readonly unknown[], reasoningField: Profile['chat']['reasoningField']): string[] {
  const named: NamedCalls = new Set()
  // Not by spreading: an answer may have more of them than a call takes arguments.
  return objectsOf(choices).flatMap((choice) => producedTexts(choice, reasoningField, named))
}
