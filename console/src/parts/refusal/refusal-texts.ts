import type { Schemas } from '@signalbox/client'
import { makeLateTexts } from '../words/late-texts.ts'

type ProblemSentences = Readonly<Record<`problem.${Schemas['Problem']['code']}`, string>>

/**
 * The sentences about refusals. Each language has one for each code of a field. In English the `detail` of a problem is the
 * one of its code. A form loads them when it is shown, so that they are there when it is refused; where they are not, the
 * messages of the API stay.
 */
export const useRefusalTexts = makeLateTexts({
  en: async () => (await import('../../language/refusals-en.json')).default,
  de: async () => (await import('../../language/refusals-de.json')).default satisfies ProblemSentences,
})
