import { Button, Code, Group, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { SidePanel } from '../../parts/dialog.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { findSection } from './guide.ts'

/** Opens a section of the operations guide, which is loaded then. */
export function GuideSection({ heading }: { heading: string }) {
  const { t } = useTranslation()
  const [isOpen, { open, close }] = useDisclosure(false)
  const guide = useQuery({
    queryKey: ['operations-guide'],
    queryFn: async () => (await import('../../../../docs/operations.md?raw')).default,
    enabled: isOpen,
    staleTime: Number.POSITIVE_INFINITY,
  })
  return (
    <Group gap={4}>
      <Text size="xs" c="dimmed">
        {t('health.guide')} <Code>docs/operations.md</Code>,
      </Text>
      <Button variant="subtle" size="compact-xs" onClick={open}>
        {heading}
      </Button>
      <SidePanel title={heading} isOpen={isOpen} onClose={close}>
        <Loaded query={guide} height={200}>
          {(text) => (
            <Code block className="wrap">
              {findSection(text, heading)}
            </Code>
          )}
        </Loaded>
      </SidePanel>
    </Group>
  )
}
