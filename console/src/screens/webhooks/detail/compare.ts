import type { Schemas } from '@signalbox/client'

/** The names that `next` has beside those of `base`, and those that it lacks. Pure. */
export function compareSets(base: ReadonlySet<string>, next: ReadonlySet<string>) {
  const added = [...next].filter((name) => !base.has(name))
  const removed = [...base].filter((name) => !next.has(name))
  return { added, removed, isSame: added.length + removed.length === 0 }
}

/** The members of a webhook that its form changes. */
export const SETTINGS = ['url', 'name', 'description'] as const

export type Settings = Readonly<Record<(typeof SETTINGS)[number], string>>

/** The settings as the fields of a form have them. Pure. */
export function readSettings({ url, name, description }: Schemas['Webhook']): Settings {
  return { url, name: name ?? '', description: description ?? '' }
}

/** The settings that differ. Pure. */
export function listChanged(base: Settings, next: Settings): (typeof SETTINGS)[number][] {
  return SETTINGS.filter((name) => next[name].trim() !== base[name])
}

/** The change of these settings alone: what somebody else changed beside them stays. Pure. */
export function buildUpdate(names: readonly (typeof SETTINGS)[number][], draft: Settings): Schemas['UpdateWebhook'] {
  return Object.fromEntries(names.map((name) => [name, draft[name].trim() || (name === 'url' ? '' : null)]))
}
