import { ActionIcon, Button, Kbd } from '@mantine/core'
import { useDisclosure, useHotkeys } from '@mantine/hooks'
import { useTranslation } from 'react-i18next'
import { buildOnDemand } from '../../parts/on-demand.tsx'
import { Icon } from '../icons.tsx'
import type { Command } from './filter-commands.ts'
import { nameModifier } from './modifier.ts'

const PaletteDialog = buildOnDemand(async () => (await import('./palette-dialog.tsx')).PaletteDialog)

/** One box for all: opens any id, e-mail address, URL or event name, goes to a screen, and does what is done often. */
export function Palette({ commands }: { commands: readonly Command[] }) {
  const { t } = useTranslation()
  const [isOpen, { open, close }] = useDisclosure(false)
  // Also in a field.
  useHotkeys([['mod+K', open]], [])
  return (
    <>
      <Button
        variant="default"
        size="xs"
        h={32}
        visibleFrom="sm"
        leftSection={<Icon name="search" size={16} />}
        rightSection={<Kbd size="xs">{nameModifier(t)} K</Kbd>}
        data-key="search"
        onClick={open}
      >
        {t('search.title')}
      </Button>
      <ActionIcon variant="default" size={32} hiddenFrom="sm" onClick={open} aria-label={t('search.title')}>
        <Icon name="search" />
      </ActionIcon>
      <PaletteDialog commands={commands} isOpen={isOpen} onClose={close} />
    </>
  )
}
