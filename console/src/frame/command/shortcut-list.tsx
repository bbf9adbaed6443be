import { Group, Kbd, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Dialog } from '../../parts/dialog.tsx'
import { usePreferences } from '../preferences.ts'
import { nameModifier } from './modifier.ts'
import type { ShortcutName } from './shortcut-keys.ts'
import { PAIRS } from './shortcuts.ts'

/** The shortcuts in the order of the list. */
const ORDER = [
  'palette',
  'search',
  'next',
  'previous',
  'open',
  'neighbour-next',
  'neighbour-previous',
  'replay',
  'newest',
  'close',
  'list',
] as const satisfies readonly (ShortcutName | 'palette' | 'open' | 'close')[]

/** Lists the keys of the console. */
export function ShortcutList({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  const { keys } = usePreferences()
  const fixed = { palette: [nameModifier(t), 'K'], open: ['Enter'], close: ['Esc'] }
  const keysOf = (name: (typeof ORDER)[number]) =>
    name === 'palette' || name === 'open' || name === 'close' ? fixed[name] : [keys[name]]
  return (
    <Dialog title={t('shortcuts.title')} isOpen={isOpen} onClose={onClose}>
      <Stack gap={6}>
        {ORDER.map((name) => (
          <Line key={name} keys={keysOf(name)} text={t(`shortcuts.${name}`)} />
        ))}
        {Object.entries(PAIRS).map(([key, to]) => (
          <Line key={key} keys={[keys.go, key]} text={t(`nav.${to.slice(1) as 'overview'}`)} />
        ))}
        <Text size="sm" c="dimmed" mt="xs">
          {t('shortcuts.off')}
        </Text>
      </Stack>
    </Dialog>
  )
}

function Line({ keys: [first, second], text }: { keys: readonly string[]; text: string }) {
  return (
    <Group justify="space-between" wrap="nowrap">
      <Text size="sm">{text}</Text>
      <Group gap={4} wrap="nowrap">
        <Kbd>{first}</Kbd>
        {second !== undefined && <Kbd>{second}</Kbd>}
      </Group>
    </Group>
  )
}
