import { useTranslation } from 'react-i18next'
import { MultiSelect } from './fields.tsx'
import { useAccountRoles, useRoles } from './names.tsx'

interface RoleSelectProps {
  value: readonly string[]
  onChange: (ids: string[]) => void
}

/** Chooses roles of a user. */
export function RoleSelect(props: RoleSelectProps) {
  return <SelectOf {...props} roles={useRoles()} />
}

/** Chooses roles of a membership: those that the user may give in the account, and those that are set. */
export function AccountRoleSelect({ account, ...props }: RoleSelectProps & { account: string }) {
  const roles = useAccountRoles(account)
  const offered = roles.filter(({ document_id, is_givable }) => is_givable || props.value.includes(document_id))
  return <SelectOf {...props} roles={offered} />
}

function SelectOf({
  roles,
  value,
  onChange,
}: RoleSelectProps & { roles: readonly { document_id: string; name: string }[] }) {
  const { t } = useTranslation()
  return (
    <MultiSelect
      field="roles"
      label={t('roles.title')}
      data={roles.map(({ document_id, name }) => ({ value: document_id, label: name }))}
      value={[...value]}
      onChange={onChange}
      searchable
      clearable
      nothingFoundMessage={t('roles.none')}
    />
  )
}
