import { Alert, Stack, Text } from '@mantine/core'
import { entityTagOf, type Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ConflictNotice } from '../../parts/conflict.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { withTag } from '../../parts/row-edit.ts'
import { type Drafts, listOwnLosses, type RoleDiff } from './role-matrix.ts'

/** Shows what a change of roles gives and takes, and warns a user who takes from itself, before it is made. */
export function SaveRoles({
  diffs,
  drafts,
  roles,
  permissions,
  onClose,
  onDone,
}: {
  diffs: readonly RoleDiff[]
  drafts: Drafts
  roles: readonly Schemas['Role'][]
  permissions: readonly string[]
  onClose: () => void
  onDone: () => void
}) {
  const { t } = useTranslation()
  const { may, session } = useAccess()
  const id = session.user.document_id
  const self = useQuery({
    queryKey: ['user', id],
    queryFn: ({ signal }) => withTag(api.identity.userFindOne({ path: { id }, signal })),
    enabled: may('user:find-one'),
  })
  const lost = listOwnLosses({ known: permissions, ownRoles: self.data?.data.roles ?? [], roles, drafts })
  const save = useChange({
    make: async () => {
      for (const { role, added, removed } of diffs) {
        const path = { id: role.document_id }
        const now = await api.identity.roleFindOne({ path })
        // A review holds for the role as it was shown: another change of it is shown first.
        if (now.data.permissions.toSorted().join() !== role.permissions.toSorted().join()) return false
        const kept = role.permissions.filter((permission) => !removed.includes(permission))
        const body = { permissions: [...kept, ...added] }
        await api.identity.roleUpdate({ path, body, ifMatch: entityTagOf(now) })
      }
      return true
    },
    touches: [['roles'], ['session'], ['user']],
    onDone: (isSaved) => isSaved && onDone(),
  })
  return (
    <ConfirmDialog
      title={t('roles.review')}
      label={t('roles.save')}
      isOpen
      onClose={onClose}
      onConfirm={() => save.mutate(undefined)}
      change={save}
    >
      <Stack gap="sm">
        {save.data === false && (
          <ConflictNotice>
            <Text size="sm">{t('roles.stale')}</Text>
          </ConflictNotice>
        )}
        <Diffs diffs={diffs} />
        {lost.length > 0 && (
          <Alert color="red" variant="outline" icon={<Icon name="warn" />} title={t('roles.own-loss')}>
            <Text size="sm" className="wrap">
              {lost.join(', ')}
            </Text>
          </Alert>
        )}
        <Text size="sm">{t('roles.save-text')}</Text>
      </Stack>
    </ConfirmDialog>
  )
}

/** Permissions that each role gets and loses. */
function Diffs({ diffs }: { diffs: readonly RoleDiff[] }) {
  const { t } = useTranslation()
  return diffs.map(({ role, added, removed }) => (
    <div key={role.document_id}>
      <Text fw={600} size="sm">
        {role.name}
      </Text>
      <ul className="diff">
        {added.map((item) => (
          <li key={item} data-kind="added">
            <span className="visually-hidden">{t('roles.gives')} </span>+ {item}
          </li>
        ))}
        {removed.map((item) => (
          <li key={item} data-kind="removed">
            <span className="visually-hidden">{t('roles.takes')} </span>− {item}
          </li>
        ))}
      </ul>
    </div>
  ))
}
