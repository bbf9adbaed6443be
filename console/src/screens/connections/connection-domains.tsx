import { Button, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { ConfirmDialog } from '../../parts/dialogs.tsx'
import { TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { List, useRows } from '../../parts/list.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { StatusBadge } from '../../parts/status.tsx'
import { Time } from '../../parts/time.tsx'
import type { Connection } from './draft.ts'

type Domain = Schemas['ConnectionDomain']

/** Actions on a domain. */
type Act = 'verify' | 'approve' | 'remove'

/** The domains whose addresses a connection signs in, and how each is proven. */
export function ConnectionDomains({ connection }: { connection: Connection }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const { account, document_id: id } = connection
  const [asked, setAsked] = useState<{ act: 'approve' | 'remove'; domain: Domain } | undefined>()
  const key = ['connection-domains', id]
  const path = { id: account, connection: id }
  const rows = useRows({
    key: [...key, 'rows'],
    load: (page, signal) => api.identity.connectionDomainFindAll({ path, query: page, signal }),
  })
  const verify = useChange({
    make: (domain: string) => api.identity.connectionDomainVerify({ path: { ...path, domain } }),
    touches: [key],
  })
  const act = (name: Act, domain: Domain) => {
    if (name === 'verify') return verify.mutate(domain.document_id)
    verify.reset()
    setAsked({ act: name, domain })
  }
  return (
    <Stack>
      <Text size="sm">{t('connections.domains-text')}</Text>
      {may('connection-domain:create') && <AddDomain path={path} touches={key} />}
      {verify.isError && <ProblemCard error={verify.error} />}
      <List
        caption={t('connections.domains')}
        columns={useColumns(act, verify.isPending ? verify.variables : undefined)}
        rows={rows}
        isFiltered={false}
        empty={<Text size="sm">{t('connections.domains-empty')}</Text>}
      />
      {asked && <AskDomain {...asked} path={path} touches={key} onClose={() => setAsked(undefined)} />}
    </Stack>
  )
}

function useColumns(act: (name: Act, domain: Domain) => void, verifying: string | undefined): Column<Domain>[] {
  const { t } = useTranslation()
  const { may, mayEverywhere } = useAccess()
  const actionsOf = ({ verified_at }: Domain): Act[] => {
    const isPending = verified_at === null
    return (
      [
        ['verify', isPending && may('connection-domain:verify')],
        ['approve', isPending && mayEverywhere('connection-domain:approve')],
        ['remove', may('connection-domain:delete')],
      ] as const
    ).flatMap(([name, isOffered]) => (isOffered ? [name] : []))
  }
  return [
    {
      label: t('connections.domain'),
      cell: ({ domain }) => (
        <Text size="sm" fw={600} miw={140} className="wrap">
          {domain}
        </Text>
      ),
    },
    { label: t('users.state'), cell: (domain) => <Proof domain={domain} /> },
    {
      label: t('connections.record'),
      cell: ({ record_name, record_value, verified_by }) =>
        verified_by === null && (
          <Stack gap={0} align="flex-start" miw={280}>
            <CopyText text={record_name} />
            <CopyText text={record_value} />
          </Stack>
        ),
    },
    {
      label: t('list.actions'),
      cell: (domain) => (
        <Group gap={4} wrap="nowrap">
          {actionsOf(domain).map((name) => (
            <Button
              key={name}
              size="compact-xs"
              variant="default"
              loading={name === 'verify' && verifying === domain.document_id}
              onClick={() => act(name, domain)}
            >
              {t(`connections.domain-${name}`)}
            </Button>
          ))}
        </Group>
      ),
    },
  ]
}

/** Whether a domain is proven and by what, or until when it may be. */
function Proof({ domain: { verified_at, verified_by, checked_at, expires_at } }: { domain: Domain }) {
  const { t } = useTranslation()
  if (verified_by !== null)
    return (
      <Stack gap={0} align="flex-start">
        <StatusBadge name="active" text={t(`connections.proven-${verified_by}`)} />
        <Text size="xs" c="dimmed" component="div">
          <Time at={verified_at} />
        </Text>
      </Stack>
    )
  return (
    <Stack gap={0} align="flex-start">
      <StatusBadge name="pending" text={t('connections.unproven')} />
      <Text size="xs" c="dimmed" component="div">
        {t('connections.claim-ends')} <Time at={expires_at} />
      </Text>
      {checked_at !== null && (
        <Text size="xs" c="dimmed" component="div">
          {t('connections.checked')} <Time at={checked_at} />
        </Text>
      )}
    </Stack>
  )
}

interface OfConnection {
  path: { id: string; connection: string }
  touches: string[]
}

function AddDomain({ path, touches }: OfConnection) {
  const { t } = useTranslation()
  const [domain, setDomain] = useState('')
  const add = useChange({
    make: () => api.identity.connectionDomainCreate({ path, body: { domain: domain.trim() } }),
    touches: [touches],
    onDone: () => setDomain(''),
  })
  return (
    <ChangeForm
      change={add}
      label={t('connections.domain-add')}
      isDisabled={domain.trim() === ''}
      buttonAt="start"
      maxWidth={480}
      actions={
        <ApiCall
          operation="identity.connectionDomainCreate"
          method="POST"
          path={`/api/v3/identity/account/${path.id}/connection/${path.connection}/domain`}
          body={{ domain: domain.trim() }}
        />
      }
    >
      <TextInput
        field="domain"
        label={t('connections.domain')}
        placeholder="example.com"
        maxLength={253}
        spellCheck={false}
        autoComplete="off"
        value={domain}
        onChange={({ currentTarget: { value } }) => setDomain(value)}
      />
    </ChangeForm>
  )
}

function AskDomain(props: OfConnection & { act: 'approve' | 'remove'; domain: Domain; onClose: () => void }) {
  const { act, domain, path, touches, onClose } = props
  const { t } = useTranslation()
  const change = useChange({
    make: () => {
      const of = { path: { ...path, domain: domain.document_id } }
      return act === 'approve' ? api.identity.connectionDomainApprove(of) : api.identity.connectionDomainDelete(of)
    },
    touches: [touches],
    onDone: onClose,
  })
  return (
    <ConfirmDialog
      title={t(`connections.domain-${act}-title`, { domain: domain.domain })}
      label={t(`connections.domain-${act}`)}
      isOpen
      onClose={onClose}
      onConfirm={() => change.mutate(undefined)}
      change={change}
    >
      <Text size="sm">{t(`connections.domain-${act}-text`)}</Text>
    </ConfirmDialog>
  )
}
