import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import {
  DEFAULT_KEYS,
  findShortcut,
  isKey,
  SHORTCUT_NAMES,
  type ShortcutName,
} from '../../frame/command/shortcut-keys.ts'
import { changePreferences, usePreferences } from '../../frame/preferences.ts'

/** Sets the key of each shortcut, for keyboards and aids that have another use for it (WCAG 2.1.4). */
export function ShortcutChoices() {
  const { t } = useTranslation()
  const { keys } = usePreferences()
  const [isOpen, { toggle }] = useDisclosure(false)
  const isChanged = SHORTCUT_NAMES.some((name) => keys[name] !== DEFAULT_KEYS[name])
  return (
    <>
      <Group gap="xs">
        <Button variant="default" size="compact-md" onClick={toggle} aria-expanded={isOpen}>
          {t('shortcuts.change')}
        </Button>
        {isChanged && (
          <Button variant="subtle" size="compact-md" onClick={() => changePreferences({ keys: DEFAULT_KEYS })}>
            {t('shortcuts.restore')}
          </Button>
        )}
      </Group>
      {isOpen && (
        <Stack gap={6}>
          {SHORTCUT_NAMES.map((name) => (
            <KeyField key={name} name={name} />
          ))}
        </Stack>
      )}
    </>
  )
}

/** The key of one shortcut. What is typed holds at once, unless another shortcut has the key. */
function KeyField({ name }: { name: ShortcutName }) {
  const { t } = useTranslation()
  const { keys } = usePreferences()
  const [refused, setRefused] = useState<string>()
  const choose = (typed: string) => {
    const key = [...typed].find((character) => character !== keys[name])
    const other = key === undefined ? undefined : findShortcut(keys, key)
    setRefused(other && t('shortcuts.taken', { key, action: t(`shortcuts.${other}`) }))
    if (isKey(key) && other === undefined) changePreferences({ keys: { ...keys, [name]: key } })
  }
  return (
    <Group justify="space-between" wrap="nowrap">
      <div>
        <Text size="sm">{t(`shortcuts.${name}`)}</Text>
        {refused !== undefined && (
          <Text size="xs" c="var(--mantine-color-error)" role="alert">
            {refused}
          </Text>
        )}
      </div>
      <TextInput
        className="key-field"
        size="xs"
        w={44}
        aria-label={t('shortcuts.key-of', { action: t(`shortcuts.${name}`) })}
        aria-invalid={refused !== undefined}
        autoComplete="off"
        autoCapitalize="none"
        value={keys[name]}
        onFocus={({ currentTarget }) => currentTarget.select()}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
      />
    </Group>
  )
}
