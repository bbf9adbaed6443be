import type { Schemas } from '@signalbox/client'
import { useEffect, useSyncExternalStore } from 'react'
import { useTranslation } from 'react-i18next'
import type { RefusalTexts } from './field-text.ts'

type ProblemSentences = Readonly<Record<`problem.${Schemas['Problem']['code']}`, string>>

/** Each language has a sentence for each code of a field. In English the `detail` of a problem is the one of its code. */
const LOADERS = {
  en: async () => (await import('../../language/refusals-en.json')).default,
  de: async () => (await import('../../language/refusals-de.json')).default satisfies ProblemSentences,
}

const loaded = new Map<string, RefusalTexts>()
const listeners = new Set<() => void>()

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Loads the sentences of a language. Where that fails, the messages of the API stay, and the next form tries again. */
async function load(language: string): Promise<void> {
  if (loaded.has(language) || !(language === 'en' || language === 'de')) return
  const texts = await LOADERS[language]().catch(() => undefined)
  if (!texts) return
  loaded.set(language, { language, texts })
  for (const listener of listeners) listener()
}

/**
 * The sentences about refusals in the language of the page; undefined until they are loaded, as no first load needs them.
 * A form loads them when it is shown, so that they are there when it is refused.
 */
export function useRefusalTexts(): { language: string; told: RefusalTexts | undefined } {
  const { language } = useTranslation().i18n
  useEffect(() => void load(language), [language])
  const told = useSyncExternalStore(subscribe, () => loaded.get(language))
  return { language, told }
}
