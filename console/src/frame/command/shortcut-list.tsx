import { Group, Kbd, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Dialog } from '../../parts/dialog.tsx'
import { PAIRS } from './shortcuts.ts'

/** The keys, each with the text of what it does. */
const KEYS = [
  [['Ctrl', 'K'], 'shortcuts.palette'],
  [['/'], 'shortcuts.palette'],
  [['j'], 'shortcuts.next'],
  [['k'], 'shortcuts.previous'],
  [['Enter'], 'shortcuts.open'],
  [[']'], 'shortcuts.neighbour-next'],
  [['['], 'shortcuts.neighbour-previous'],
  [['r'], 'shortcuts.replay'],
  [['t'], 'shortcuts.newest'],
  [['Esc'], 'shortcuts.close'],
  [['?'], 'shortcuts.list'],
] as const

/** Lists the keys of the console. */
export function ShortcutList({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  return (
    <Dialog title={t('shortcuts.title')} isOpen={isOpen} onClose={onClose}>
      <Stack gap={6}>
        {KEYS.map(([keys, text]) => (
          <Line key={keys.join()} keys={keys} text={t(text)} />
        ))}
        {Object.entries(PAIRS).map(([key, to]) => (
          <Line key={key} keys={['g', key]} text={t(`nav.${to.slice(1) as 'overview'}`)} />
        ))}
        <Text size="sm" c="dimmed" mt="xs">
          {t('shortcuts.off')}
        </Text>
      </Stack>
    </Dialog>
  )
}

function Line({ keys, text }: { keys: readonly string[]; text: string }) {
  return (
    <Group justify="space-between" wrap="nowrap">
      <Text size="sm">{text}</Text>
      <Group gap={4} wrap="nowrap">
        {keys.map((key) => (
          <Kbd key={key}>{key}</Kbd>
        ))}
      </Group>
    </Group>
  )
}
