import type { Schemas } from '@signalbox/client'
import { showMaxPerSecond, toMaxPerSecond } from '../max-per-second.ts'
import { toResourceIds } from '../resource-ids.ts'

/** The names that `next` has beside those of `base`, and those that it lacks. Pure. */
export function compareSets(base: ReadonlySet<string>, next: ReadonlySet<string>) {
  const added = [...next].filter((name) => !base.has(name))
  const removed = [...base].filter((name) => !next.has(name))
  return { added, removed, isSame: added.length + removed.length === 0 }
}

/** A member of a webhook that its form changes. */
type Setting = 'url' | 'name' | 'description' | 'resource_ids' | 'max_per_second'

export type Settings = Readonly<Record<Setting, string>>

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

/** The change of these settings alone: what somebody else changed beside them stays. Pure. */
export function buildUpdate(changed: Partial<Settings>): Schemas['UpdateWebhook'] {
  const names = Object.keys(changed) as Setting[]
  return Object.fromEntries(names.map((name) => [name, toMember(name, changed[name] ?? '')]))
}

function toMember(name: Setting, text: string): string | string[] | number | null {
  if (name === 'max_per_second') return toMaxPerSecond(text)
  if (name === 'resource_ids') return toResourceIds(text)
  return text.trim() || (name === 'url' ? '' : null)
}
