import { Button, Checkbox, Group, Stack, Textarea, TextInput } from '@mantine/core'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { ProblemCard } from '../../parts/problem.tsx'

/** Makes a role without permissions; the matrix gives it some. */
export function RoleForm({ onDone }: { onDone: () => void }) {
  const { t } = useTranslation()
  const [draft, setDraft] = useState({ name: '', description: '', isOfAccount: false, needsFactor: false })
  const create = useChange({
    make: () => {
      const body = {
        name: draft.name.trim(),
        description: draft.description.trim() || null,
        permissions: [],
        is_account_scoped: draft.isOfAccount,
        requires_second_factor: draft.needsFactor,
      }
      return api.identity.roleCreate({ body })
    },
    touches: [['roles']],
    onDone,
  })
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    create.mutate(undefined)
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label={t('roles.name')}
          required
          data-autofocus
          value={draft.name}
          onChange={({ currentTarget: { value } }) => setDraft({ ...draft, name: value })}
        />
        <Textarea
          label={t('create.description')}
          value={draft.description}
          onChange={({ currentTarget: { value } }) => setDraft({ ...draft, description: value })}
        />
        <Checkbox
          label={t('roles.of-account')}
          description={t('roles.of-account-text')}
          checked={draft.isOfAccount}
          onChange={({ currentTarget: { checked } }) => setDraft({ ...draft, isOfAccount: checked })}
        />
        <Checkbox
          label={t('roles.needs-factor')}
          description={t('roles.needs-factor-text')}
          checked={draft.needsFactor}
          onChange={({ currentTarget: { checked } }) => setDraft({ ...draft, needsFactor: checked })}
        />
        {create.isError && <ProblemCard error={create.error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={create.isPending}>
            {t('roles.create')}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
