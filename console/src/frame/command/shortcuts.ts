import { useEffect, useRef } from 'react'
import { usePreferences } from '../preferences.ts'
import { findShortcut, type ShortcutName } from './shortcut-keys.ts'

/** How long the second key of a pair may take, ms. */
const PAIR_MS = 1_500

/** The second key behind that of `go`, and the screen that it opens. */
export const PAIRS: Readonly<Record<string, string>> = {
  o: '/overview',
  d: '/deliveries',
  w: '/webhooks',
  e: '/events',
  c: '/catalogue',
  u: '/users',
  p: '/provisioning',
  r: '/realtime',
  a: '/audit',
  h: '/health',
  s: '/settings',
}

interface Handlers {
  onGo: (to: string) => void
  onHelp: () => void
}

/** Keys that are typed into a field, or held with another key, are no shortcuts. */
function isTyped({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) return true
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable="true"]') !== null
}

/** The links of the rows of the list on the screen, one in each. */
function listRowLinks(): HTMLAnchorElement[] {
  return [...document.querySelectorAll<HTMLTableRowElement>('main tbody tr')].flatMap((row) => {
    const link = row.querySelector<HTMLAnchorElement>('a[href]')
    return link ? [link] : []
  })
}

/** The link `step` behind the one at `index`; without one, the first or the last. Stays at the ends. Pure. */
export function findNext(count: number, index: number, step: 1 | -1): number {
  if (index < 0) return step === 1 ? 0 : count - 1
  return Math.min(count - 1, Math.max(0, index + step))
}

function focusRow(step: 1 | -1): void {
  // Behind a dialog nothing takes the focus.
  if (document.querySelector('[role="dialog"]')) return
  const links = listRowLinks()
  const index = links.findIndex((link) => link.closest('tr')?.contains(document.activeElement))
  links[findNext(links.length, index, step)]?.focus()
}

/** Presses the control with this `data-key`. Returns whether there is one. */
function pressControl(name: ShortcutName): boolean {
  const control = document.querySelector<HTMLElement>(`[data-key="${name}"]`)
  control?.click()
  return control !== null
}

/** Opens the row before or behind the one that is shown beside the list, unless its panel has controls for them. */
function openNeighbour(step: 1 | -1): void {
  if (pressControl(step === 1 ? 'neighbour-next' : 'neighbour-previous')) return
  const links = listRowLinks()
  const index = links.findIndex(({ pathname }) => pathname === location.pathname)
  if (index >= 0) links[findNext(links.length, index, step)]?.click()
}

/** The keys of the console; none while they are switched off. Most press the control whose `data-key` is their shortcut. */
export function useShortcuts({ onGo, onHelp }: Handlers): void {
  const { shortcuts, keys } = usePreferences()
  const pairUntil = useRef(0)
  useEffect(() => {
    if (!shortcuts) return
    const press = (event: KeyboardEvent) => {
      if (isTyped(event)) return
      const isPair = event.timeStamp < pairUntil.current
      pairUntil.current = 0
      const to = isPair ? PAIRS[event.key] : undefined
      if (to !== undefined) return onGo(to)
      const name = findShortcut(keys, event.key)
      if (name === undefined) return
      if (name === 'go') pairUntil.current = event.timeStamp + PAIR_MS
      else if (name === 'next' || name === 'previous') focusRow(name === 'next' ? 1 : -1)
      else if (name === 'neighbour-next' || name === 'neighbour-previous')
        openNeighbour(name === 'neighbour-next' ? 1 : -1)
      else if (name === 'list') onHelp()
      else pressControl(name)
      event.preventDefault()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [shortcuts, keys, onGo, onHelp])
}
