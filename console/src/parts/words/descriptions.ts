import type { Schemas } from '@signalbox/client'
import { makeLateTexts } from './late-texts.ts'

/** The API has the English ones. */
const useTexts = makeLateTexts({
  de: async () => (await import('../../language/descriptions-de.json')).default,
})

/** Holds the place of a text that is still loading. */
const PLACE = '\u00A0'

type EventType = Pick<Schemas['EventType'], 'internal' | 'source' | 'description'>
type Role = Pick<Schemas['Role'], 'name' | 'is_system' | 'description'>

/**
 * Descriptions in the language of the page, of what the service itself declares; what somebody else has described keeps those
 * words. A screen loads them when it is shown.
 */
export function useDescriptions() {
  const { told, isPending } = useTexts()
  const describe = (key: string, description: string | null) => (isPending ? PLACE : (told?.texts[key] ?? description))
  return {
    ofType: ({ internal, source, description }: EventType) =>
      source === 'external' ? description : describe(`event.${internal}`, description),
    ofRole: ({ name, is_system, description }: Role) =>
      is_system ? describe(`role.${name}`, description) : description,
  }
}
