import { useTranslation } from 'react-i18next'
import { MultiSelect } from './fields.tsx'
import { useRoles } from './names.tsx'

/** Chooses roles: all, or those that hold in single accounts. */
export function RoleSelect({
  value,
  onChange,
  isOfAccount = false,
}: {
  value: readonly string[]
  onChange: (ids: string[]) => void
  isOfAccount?: boolean
}) {
  const { t } = useTranslation()
  const roles = useRoles().filter(({ is_account_scoped }) => !isOfAccount || is_account_scoped)
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
