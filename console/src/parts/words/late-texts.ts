import { useEffect, useSyncExternalStore } from 'react'
import { useTranslation } from 'react-i18next'

/** Texts of a language by key. */
export interface LateTexts {
  language: string
  texts: Readonly<Record<string, string>>
}

/** The texts of a language, or none since they could not be loaded. */
interface Settled {
  told?: LateTexts
}

/**
 * Texts that no first load needs, by language: what is shown loads them. Where that fails, it stands without them, and what is
 * shown next tries again. The hook gives those of the language of the page; a language without a loader has none.
 */
export function makeLateTexts(loaders: Readonly<Record<string, () => Promise<LateTexts['texts']>>>) {
  const settled = new Map<string, Settled>()
  const listeners = new Set<() => void>()
  const subscribe = (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const load = async (language: string): Promise<void> => {
    const loader = loaders[language]
    if (!loader || settled.get(language)?.told) return
    const texts = await loader().catch(() => undefined)
    settled.set(language, texts ? { told: { language, texts } } : {})
    for (const listener of listeners) listener()
  }
  return function useLateTexts(): { language: string; told: LateTexts | undefined; isPending: boolean } {
    const { language } = useTranslation().i18n
    useEffect(() => void load(language), [language])
    const found = useSyncExternalStore(subscribe, () => settled.get(language))
    return { language, told: found?.told, isPending: language in loaders && !found }
  }
}
