import type { TFunction } from 'i18next'

/** The name of the key that `mod` stands for, as it is written on the keyboards of this system. */
export function nameModifier(t: TFunction): string {
  return /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : t('shortcuts.modifier')
}
