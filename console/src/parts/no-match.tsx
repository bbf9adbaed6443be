import { Button, Code, Group, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'

/** A filter of a list by the words of its screen: what it is called, and its value. Without a value it is not set. */
export type NamedFilter = readonly [label: string, value: string | undefined]

interface NoMatchProps {
  /** The filters of the list. Default: the screen names none. */
  filters?: readonly NamedFilter[] | undefined
  onClear?: (() => void) | undefined
}

/** Replacement for a list that its filters leave empty: which these are, and what clears them. */
export function NoMatch({ filters = [], onClear }: NoMatchProps) {
  const { t } = useTranslation()
  const active = filters.flatMap(([label, value]) => (value ? [{ label, value }] : []))
  return (
    <Stack align="center">
      <Text size="sm">{t('list.no-match')}</Text>
      {active.length > 0 && (
        <Group component="ul" aria-label={t('list.active-filters')} className="active-filters">
          {active.map(({ label, value }) => (
            <Code component="li" key={label} fz="sm">
              {t('list.filter', { label, value })}
            </Code>
          ))}
        </Group>
      )}
      {onClear && (
        <Button variant="default" onClick={onClear}>
          {t('list.clear')}
        </Button>
      )}
    </Stack>
  )
}
