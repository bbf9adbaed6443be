import { Button, Group, Skeleton, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useUnsaved } from '../../frame/unsaved.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CreateButton } from '../../parts/create-button.tsx'
import { guardScreen } from '../../parts/guarded.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { usePermissions } from '../keys/permissions.ts'
import { RoleForm } from './role-form.tsx'
import { RoleHolders } from './role-holders.tsx'
import { type Drafts, listDiffs, rebaseDrafts } from './role-matrix.ts'
import { RoleTable } from './role-table.tsx'
import { SaveRoles } from './save-roles.tsx'

/** Permissions of each role, as a matrix. */
export const RolesScreen = guardScreen(
  'role:find-all',
  'roles.title',
  guardScreen('permission:find-all', 'roles.title', Roles),
)

function Roles() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [isSaving, setIsSaving] = useState(false)
  const [opened, setOpened] = useState<string | undefined>()
  const roles = useQuery({
    queryKey: ['roles', 'all'],
    queryFn: ({ signal }) => api.identity.roleFindAll({ query: { sort: 'name', page_size: 200 }, signal }),
  })
  const permissions = usePermissions()
  const [drafts, setDrafts] = useDrafts(roles.data?.data)
  // Those that can be changed stand first.
  const rows = (roles.data?.data ?? []).toSorted((a, b) => Number(a.is_system) - Number(b.is_system))
  const diffs = listDiffs(rows, drafts)
  useUnsaved(diffs.length > 0)
  const failed = roles.error ?? permissions.error
  return (
    <Page
      title={t('roles.title')}
      lead={t('roles.lead')}
      actions={
        <>
          {may('role:create') && (
            <CreateButton label={t('roles.new')}>{(close) => <RoleForm onDone={close} />}</CreateButton>
          )}
          <ApiCall operation="identity.roleFindAll" method="GET" path="/api/v3/identity/role" />
        </>
      }
    >
      {failed && (
        <ProblemCard error={failed} onRetry={() => void Promise.all([roles.refetch(), permissions.refetch()])} />
      )}
      {(roles.isPending || permissions.isPending) && <Skeleton height={320} aria-busy />}
      {roles.data && permissions.data && (
        <RoleTable
          roles={rows}
          permissions={permissions.data}
          drafts={drafts}
          onDraft={(id, patterns) => setDrafts(new Map(drafts).set(id, patterns))}
          onOpen={setOpened}
        />
      )}
      {diffs.length > 0 && (
        <SaveBar count={diffs.length} onDiscard={() => setDrafts(new Map())} onReview={() => setIsSaving(true)} />
      )}
      {isSaving && (
        <SaveRoles
          diffs={diffs}
          drafts={drafts}
          roles={rows}
          permissions={permissions.data ?? []}
          onClose={() => setIsSaving(false)}
          onDone={() => {
            setIsSaving(false)
            setDrafts(new Map())
          }}
        />
      )}
      <RoleHolders role={rows.find(({ document_id }) => document_id === opened)} onClose={() => setOpened(undefined)} />
    </Page>
  )
}

/** The drafts of roles, over what the roles are now. */
function useDrafts(roles: readonly Schemas['Role'][] | undefined) {
  const [drafts, setDrafts] = useState<Drafts>(new Map())
  const [base, setBase] = useState(roles)
  if (roles && roles !== base) {
    if (base) setDrafts(rebaseDrafts(drafts, base, roles))
    setBase(roles)
  }
  return [drafts, setDrafts] as const
}

function SaveBar({ count, onDiscard, onReview }: { count: number; onDiscard: () => void; onReview: () => void }) {
  const { t } = useTranslation()
  return (
    <Group className="save-bar" justify="space-between">
      <Text size="sm" fw={600} role="status">
        {t('roles.changed', { count })}
      </Text>
      <Group gap="xs">
        <Button size="compact-md" variant="default" onClick={onDiscard}>
          {t('roles.discard')}
        </Button>
        <Button size="compact-md" onClick={onReview}>
          {t('roles.review')}
        </Button>
      </Group>
    </Group>
  )
}
