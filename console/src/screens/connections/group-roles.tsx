import { Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { GroupError } from '../../parts/fields.tsx'
import { useAccountRoles } from '../../parts/names.tsx'
import type { GroupRole } from './draft.ts'

/** Most roles of groups that one connection has. */
const GROUP_ROLES_LIMIT = 100

/** The roles that the user may give in the account, as options; others that are set keep theirs. */
export function useRoleOptions(account: string, given: readonly string[]): { value: string; label: string }[] {
  const roles = useAccountRoles(account).filter(
    ({ document_id, is_givable }) => is_givable || given.includes(document_id),
  )
  const known = roles.map(({ document_id, name }) => ({ value: document_id, label: name }))
  const others = [...new Set(given)].filter((id) => id !== '' && !known.some(({ value }) => value === id))
  return [...known, ...others.map((id) => ({ value: id, label: id.slice(0, 8) }))]
}

interface GroupRolesProps {
  account: string
  rows: readonly GroupRole[]
  onChange: (rows: GroupRole[]) => void
}

/** Fields for the roles that groups of the provider give. */
export function GroupRoles({ account, rows, onChange }: GroupRolesProps) {
  const { t } = useTranslation()
  const given = rows.map(({ role }) => role)
  const roles = useRoleOptions(account, given)
  const change = (place: number, members: Partial<GroupRole>) =>
    onChange(rows.map((row, index) => (index === place ? { ...row, ...members } : row)))
  return (
    <Stack gap="xs">
      <div>
        <Text size="sm" fw={600}>
          {t('connections.group-roles')}
        </Text>
        <Text size="xs" c="dimmed">
          {t('connections.group-roles-hint')}
        </Text>
      </div>
      {rows.map((row, place) => {
        const number = place + 1
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a row has no id; its fields are those of its place
          <Group key={place} gap="xs" wrap="nowrap" align="flex-start">
            <TextInput
              aria-label={t('connections.group', { number })}
              placeholder="engineering"
              required
              maxLength={256}
              spellCheck={false}
              autoComplete="off"
              value={row.group}
              onChange={({ currentTarget }) => change(place, { group: currentTarget.value })}
              style={{ flex: 1, minWidth: 0 }}
            />
            <NativeSelect
              aria-label={t('connections.group-role', { number })}
              required
              data={[{ value: '', label: t('connections.choose-role') }, ...roles]}
              value={row.role}
              onChange={({ currentTarget }) => change(place, { role: currentTarget.value })}
              style={{ flex: 1, minWidth: 0 }}
            />
            <Button
              variant="subtle"
              color="gray"
              px="xs"
              aria-label={t('connections.group-remove', { number })}
              onClick={() => onChange(rows.filter((_, index) => index !== place))}
            >
              ×
            </Button>
          </Group>
        )
      })}
      <GroupError field="group_roles" />
      {roles.length === 0 && <Text size="sm">{t('connections.roles-hidden')}</Text>}
      <Group>
        <Button
          variant="default"
          size="compact-md"
          disabled={roles.length === 0 || rows.length >= GROUP_ROLES_LIMIT}
          onClick={() => onChange([...rows, { group: '', role: '' }])}
        >
          {t('connections.group-add')}
        </Button>
      </Group>
    </Stack>
  )
}
