import type { Schemas } from '@signalbox/client'
import { showMaxPerSecond, toMaxPerSecond } from '../max-per-second.ts'
import { listLines, toResourceIds } from '../resource-ids.ts'

/** The names that `next` has beside those of `base`, and those that it lacks. Pure. */
export function compareSets(base: ReadonlySet<string>, next: ReadonlySet<string>) {
  const added = [...next].filter((name) => !base.has(name))
  const removed = [...base].filter((name) => !next.has(name))
  return { added, removed, isSame: added.length + removed.length === 0 }
}

/** The members of a webhook that its form changes. */
export const SETTINGS = ['url', 'name', 'description', 'resource_ids', 'max_per_second'] as const

export type Settings = Readonly<Record<(typeof SETTINGS)[number], string>>

/** The settings as the fields of a form have them. Pure. */
export function readSettings({
  url,
  name,
  description,
  resource_ids: ids,
  max_per_second: limit,
}: Schemas['Webhook']): Settings {
  const lists = { resource_ids: ids?.join('\n') ?? '', max_per_second: showMaxPerSecond(limit) }
  return { url, name: name ?? '', description: description ?? '', ...lists }
}

/** The settings that differ. Pure. */
export function listChanged(base: Settings, next: Settings): (typeof SETTINGS)[number][] {
  return SETTINGS.filter((name) => readDraft(name, next[name]) !== base[name])
}

const readDraft = (name: (typeof SETTINGS)[number], text: string) =>
  name === 'resource_ids' ? listLines(text).join('\n') : text.trim()

/** The change of these settings alone: what somebody else changed beside them stays. Pure. */
export function buildUpdate(names: readonly (typeof SETTINGS)[number][], draft: Settings): Schemas['UpdateWebhook'] {
  return Object.fromEntries(names.map((name) => [name, toMember(name, draft[name])]))
}

function toMember(name: (typeof SETTINGS)[number], text: string): string | string[] | number | null {
  if (name === 'max_per_second') return toMaxPerSecond(text)
  if (name === 'resource_ids') return toResourceIds(text)
  return text.trim() || (name === 'url' ? '' : null)
}
