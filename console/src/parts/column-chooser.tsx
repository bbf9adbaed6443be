import { Button, Checkbox, Popover, Stack } from '@mantine/core'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { changePreferences, usePreferences } from '../frame/preferences.ts'

/** A column that may be left out of a list. */
export interface Choosable {
  id: string
  label: string
}

/** The columns that this browser leaves out of a list. */
export function useHidden(list: string): ReadonlySet<string> {
  const names = usePreferences().hidden[list]
  return useMemo(() => new Set(names), [names])
}

/** Chooses the columns of a list and the density of all lists; kept in this browser. */
export function ColumnChooser({ list, columns }: { list: string; columns: readonly Choosable[] }) {
  const { t } = useTranslation()
  const { hidden: all, density } = usePreferences()
  const hidden = useHidden(list)
  const show = (id: string, isShown: boolean) => {
    const next = new Set(hidden)
    isShown ? next.delete(id) : next.add(id)
    changePreferences({ hidden: { ...all, [list]: [...next] } })
  }
  return (
    <Popover position="bottom-end" withArrow trapFocus>
      <Popover.Target>
        <Button variant="subtle" color="gray" size="compact-sm">
          {t('list.columns')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs">
          {columns.map(({ id, label }) => (
            <Checkbox
              key={id}
              size="xs"
              label={label}
              checked={!hidden.has(id)}
              onChange={({ currentTarget }) => show(id, currentTarget.checked)}
            />
          ))}
          <Checkbox
            size="xs"
            label={t('list.compact')}
            checked={density === 'compact'}
            onChange={({ currentTarget }) =>
              changePreferences({ density: currentTarget.checked ? 'compact' : 'comfortable' })
            }
          />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
