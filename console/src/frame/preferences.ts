import { useSyncExternalStore } from 'react'
import { DEFAULT_KEYS, readKeys, type ShortcutKeys } from './command/shortcut-keys.ts'
import { buildListeners } from './listeners.ts'

/** The choices of this browser. None of them is a secret. */
export interface Preferences {
  density: 'comfortable' | 'compact'
  timeZone: 'local' | 'utc'
  /** Whether single keys are shortcuts (WCAG 2.1.4). */
  shortcuts: boolean
  keys: ShortcutKeys
  /** The columns that are left out of lists, by the name of the list. */
  hidden: Readonly<Record<string, readonly string[]>>
}

const KEY = 'signalbox-console-preferences'

const DEFAULTS: Preferences = {
  density: 'comfortable',
  timeZone: 'local',
  shortcuts: true,
  keys: DEFAULT_KEYS,
  hidden: { deliveries: ['trigger'] },
}

/** Reads stored preferences; what is not one of the choices falls back to the default. Pure. */
export function parsePreferences(text: string | null): Preferences {
  let given: Partial<Record<keyof Preferences, unknown>> = {}
  try {
    given = JSON.parse(text ?? '{}') ?? {}
  } catch {}
  return {
    density: given.density === 'compact' ? 'compact' : DEFAULTS.density,
    timeZone: given.timeZone === 'utc' ? 'utc' : DEFAULTS.timeZone,
    shortcuts: given.shortcuts !== false,
    keys: readKeys(given.keys),
    hidden: readHidden(given.hidden),
  }
}

function readHidden(given: unknown): Preferences['hidden'] {
  if (typeof given !== 'object' || given === null) return DEFAULTS.hidden
  const isNames = (value: unknown) => Array.isArray(value) && value.every((name) => typeof name === 'string')
  return { ...DEFAULTS.hidden, ...Object.fromEntries(Object.entries(given).filter(([, names]) => isNames(names))) }
}

const listeners = buildListeners()
let current: Preferences | undefined

function read(): Preferences {
  current ??= parsePreferences(localStorage.getItem(KEY))
  return current
}

/** The style sheet looks at the density. */
function showDensity(): void {
  document.documentElement.dataset.density = read().density
}

/** Changes choices, here and in the screens that are open. */
export function changePreferences(change: Partial<Preferences>): void {
  current = { ...read(), ...change }
  localStorage.setItem(KEY, JSON.stringify(current))
  showDensity()
  listeners.tell()
}

function subscribe(listener: () => void): () => void {
  showDensity()
  return listeners.subscribe(listener)
}

/** The choices of this browser. */
export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, read)
}

/** The zone in which instants are shown; undefined for that of the browser. */
export function useTimeZone(): 'UTC' | undefined {
  return usePreferences().timeZone === 'utc' ? 'UTC' : undefined
}
