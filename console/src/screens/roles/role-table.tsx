import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { Scroll } from '../../parts/scroll/scroll.tsx'
import { useDescriptions } from '../../parts/words/descriptions.ts'
import { type Drafts, groupPermissions, holdingOf, toggle } from './role-matrix.ts'

type Role = Schemas['Role']

interface TableProps {
  roles: readonly Role[]
  permissions: readonly string[]
  drafts: Drafts
  onDraft: (role: string, patterns: string[]) => void
  /** Shows who has the role. */
  onOpen: (role: string) => void
}

/** Permissions by resource, and a column for each role. A group opens to its permissions. */
export function RoleTable({ roles, permissions, drafts, onDraft, onOpen }: TableProps) {
  const { t } = useTranslation()
  const [text, setText] = useState('')
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const wanted = text.trim().toLowerCase()
  const groups = groupPermissions(permissions.filter((name) => name.includes(wanted)))
  const isOpen = (resource: string) => wanted !== '' || open.has(resource)
  const flip = (resource: string) => {
    const next = new Set(open)
    if (!next.delete(resource)) next.add(resource)
    setOpen(next)
  }
  return (
    <Stack gap="sm">
      <Group align="flex-end" gap="sm">
        <TextInput
          label={t('access.search')}
          placeholder="webhook"
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
        <Button
          variant="default"
          onClick={() => setOpen(open.size > 0 ? new Set() : new Set(groups.map(([resource]) => resource)))}
        >
          {open.size > 0 ? t('roles.close-all') : t('roles.open-all')}
        </Button>
      </Group>
      <Scroll className="tall" label={t('roles.matrix')}>
        <table className="table sticky matrix">
          <caption className="visually-hidden">{t('roles.matrix')}</caption>
          <thead>
            <tr>
              <th scope="col">{t('access.permission')}</th>
              {roles.map((role) => (
                <th key={role.document_id} scope="col" className="center">
                  <RoleHead role={role} onOpen={onOpen} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {groups.map(([resource, names]) => (
              <ResourceRows
                key={resource}
                resource={resource}
                names={names}
                isOpen={isOpen(resource)}
                onFlip={() => flip(resource)}
                roles={roles}
                drafts={drafts}
                onDraft={onDraft}
              />
            ))}
          </tbody>
        </table>
      </Scroll>
      {groups.length === 0 && <Text size="sm">{t('list.no-match')}</Text>}
    </Stack>
  )
}

function RoleHead({ role, onOpen }: { role: Role; onOpen: (role: string) => void }) {
  const { t } = useTranslation()
  const { ofRole } = useDescriptions()
  const notes = [
    ...(role.is_system ? [t('roles.locked')] : []),
    ...(role.is_account_scoped ? [t('access.in-accounts')] : []),
    ...(role.requires_second_factor ? [t('access.second-factor')] : []),
  ]
  return (
    <Stack gap={0} align="center">
      <Button variant="subtle" size="compact-sm" onClick={() => onOpen(role.document_id)} title={ofRole(role) ?? ''}>
        {role.name}
      </Button>
      {notes.map((note) => (
        <Text key={note} size="xs" c="dimmed" className="nowrap">
          {note}
        </Text>
      ))}
    </Stack>
  )
}

interface GroupProps extends Pick<TableProps, 'roles' | 'drafts' | 'onDraft'> {
  resource: string
  names: readonly string[]
  isOpen: boolean
  onFlip: () => void
}

function ResourceRows({ resource, names, isOpen, onFlip, roles, drafts, onDraft }: GroupProps) {
  const whole = `${resource}:*`
  const patternsOf = (role: Role) => drafts.get(role.document_id) ?? role.permissions
  const rows = [whole, ...(isOpen ? names : [])]
  return rows.map((permission) => (
    <tr key={permission} data-group={permission === whole || undefined}>
      <th scope="row" className="nowrap">
        {permission === whole ? (
          <Button variant="subtle" color="gray" size="compact-sm" aria-expanded={isOpen} onClick={onFlip}>
            {isOpen ? '▾' : '▸'} {resource}
          </Button>
        ) : (
          <span className="mono indent">{permission.slice(resource.length + 1)}</span>
        )}
      </th>
      {roles.map((role) => (
        <td key={role.document_id} className="center">
          <Cell
            role={role}
            permission={permission}
            patterns={patternsOf(role)}
            {...(permission === whole && { names })}
            onToggle={() => onDraft(role.document_id, toggle(patternsOf(role), permission))}
          />
        </td>
      ))}
    </tr>
  ))
}

function Cell({
  role,
  permission,
  patterns,
  names,
  onToggle,
}: {
  role: Role
  permission: string
  patterns: readonly string[]
  /** Of a whole resource, its permissions. */
  names?: readonly string[]
  onToggle: () => void
}) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const holding = holdingOf(patterns, permission)
  const count = names?.filter((name) => holdingOf(patterns, name) !== 'none').length ?? 0
  const isLocked = role.is_system || !may('role:update') || holding === 'wider'
  return (
    <label className="cell" title={holding === 'wider' ? t('roles.wider') : undefined}>
      <span className="visually-hidden">{t('roles.cell', { role: role.name, permission })}</span>
      <input
        type="checkbox"
        checked={holding !== 'none'}
        disabled={isLocked}
        ref={(box) => {
          if (box) box.indeterminate = holding === 'none' && count > 0
        }}
        onChange={onToggle}
      />
      {names && holding === 'none' && count > 0 && (
        <Text span size="xs" c="dimmed">
          {count}/{names.length}
        </Text>
      )}
    </label>
  )
}
