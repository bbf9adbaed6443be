import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { useRows } from '../../parts/list.tsx'
import { UserLink, useUsers } from '../../parts/names.tsx'
import type { Column } from '../../parts/row-table.tsx'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { Time } from '../../parts/time.tsx'
import { useTargetNames } from './targets.ts'

export type Provisioned = Schemas['ProvisioningDelivery']

/** The ledger of provisioning by filters, newest first. */
export function useProvisioned(filters: readonly string[]) {
  const query = { sort: '-created_at' as const, ...(filters.length > 0 && { filters: [...filters] }) }
  return useRows<Provisioned>({
    key: ['provisioned', filters],
    load: (page, signal) => api.provisioning.provisioningDeliveryFindAll({ query: { ...query, ...page }, signal }),
    isNewestFirst: true,
  })
}

/** The columns of deliveries to targets: those of the ledger, with the user and the target. */
export function useProvisionedColumns(shown: readonly Provisioned[]): Column<Provisioned>[] {
  const { t } = useTranslation()
  const names = useTargetNames()
  const users = useUsers(shown.map(({ user }) => user))
  return [
    { id: 'status', label: t('deliveries.status'), cell: ({ status }) => <Status name={status} /> },
    {
      label: t('provisioning.change'),
      opens: true,
      cell: ({ document_id, type }) => (
        <TextLink to="/provisioning/deliveries/$id" params={{ id: document_id }} search size="sm" className="nowrap">
          {type}
        </TextLink>
      ),
    },
    { id: 'user', label: t('users.one'), cell: ({ user }) => <UserLink id={user} users={users} /> },
    {
      id: 'target',
      label: t('provisioning.one'),
      cell: ({ target }) => names.get(target) ?? <CopyText text={target} isShort />,
    },
    { id: 'created', label: t('deliveries.created'), cell: ({ created_at }) => <Time at={created_at} /> },
    { id: 'attempts', label: t('deliveries.attempts'), isNumber: true, cell: ({ attempts }) => attempts },
    {
      id: 'answer',
      label: t('deliveries.answer'),
      cell: ({ last_status_code: code, last_error: fault }) => code ?? fault ?? '–',
    },
    { id: 'next', label: t('deliveries.next'), cell: ({ next_attempt_at }) => <Time at={next_attempt_at} /> },
  ]
}
