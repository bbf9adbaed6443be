import { Code, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { CopyText } from '../../parts/copy-text.tsx'
import { SidePanel } from '../../parts/dialog.tsx'
import { Facts } from '../../parts/facts.tsx'
import { AccountLink, UserLink, useAccountNames, useRoles, useUsers } from '../../parts/names.tsx'
import { Status } from '../../parts/status.tsx'
import { Instant } from '../../parts/time.tsx'
import { OF_CHANGES, readChanges } from './audit-changes.ts'

type Entry = Schemas['AuditEntry']

/** Everything that an entry of the audit log says. */
export function AuditEntryPanel({ entry, onClose }: { entry: Entry | undefined; onClose: () => void }) {
  return (
    <SidePanel title={entry?.action ?? ''} isOpen={entry !== undefined} onClose={onClose}>
      {entry && <Content entry={entry} />}
    </SidePanel>
  )
}

function Content({ entry }: { entry: Entry }) {
  const { t } = useTranslation()
  const users = useUsers([entry.user])
  const accounts = useAccountNames([entry.account])
  const id = (text: string | null) => text !== null && <CopyText text={text} />
  const line = (label: string, text: string | null) => (text === null ? undefined : ([label, id(text)] as const))
  return (
    <Stack gap="lg">
      <Facts
        lines={[
          [t('audit.time'), <Instant key="t" at={entry.created_at} />],
          [t('audit.outcome'), <Status key="o" name={entry.outcome} />],
          entry.count > 1 ? [t('audit.count'), String(entry.count)] : undefined,
          entry.user === null ? undefined : [t('audit.user'), <UserLink key="u" id={entry.user} users={users} />],
          entry.account === null
            ? undefined
            : [t('account.label'), <AccountLink key="a" id={entry.account} names={accounts} />],
          line(t('audit.target'), entry.target),
          line(t('sign-ins.session'), entry.session),
          line(t('audit.key'), entry.api_key),
          line(t('audit.app'), entry.client_id),
          line(t('audit.address'), entry.address),
          line(t('problem.request'), entry.request_id),
        ]}
      />
      <Changes detail={entry.detail} />
      <Detail detail={entry.detail} />
      <Stack gap="xs">
        <Title order={3} size="h5">
          {t('users.tab.raw')}
        </Title>
        <Code block className="wrap">
          {JSON.stringify(entry, null, 2)}
        </Code>
      </Stack>
    </Stack>
  )
}

const toText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

/** Members that the change made different, with their values before and after. */
function Changes({ detail }: { detail: Entry['detail'] }) {
  const { t } = useTranslation()
  const roles = new Map(useRoles().map(({ document_id, name }) => [document_id, name]))
  const { changes, without } = readChanges(detail)
  if (changes.length + without.length === 0) return null
  const show = (value: unknown) => (value === null ? '–' : (roles.get(String(value)) ?? toText(value)))
  return (
    <Stack gap="xs">
      <Title order={3} size="h5">
        {t('audit.changes')}
      </Title>
      {changes.map(({ name, removed, added }) => (
        <div key={name}>
          <Text size="sm" fw={500}>
            {name}
          </Text>
          <ul className="diff">
            {removed.map((value) => (
              <li key={`- ${toText(value)}`} data-kind="removed" className="wrap">
                <span className="visually-hidden">{t('audit.before')} </span>− {show(value)}
              </li>
            ))}
            {added.map((value) => (
              <li key={`+ ${toText(value)}`} data-kind="added" className="wrap">
                <span className="visually-hidden">{t('audit.after')} </span>+ {show(value)}
              </li>
            ))}
          </ul>
        </div>
      ))}
      {without.length > 0 && <Text size="sm">{t('audit.without-values', { members: without.join(', ') })}</Text>}
    </Stack>
  )
}

/** Details of the operation, name by name. */
function Detail({ detail }: { detail: Entry['detail'] }) {
  const { t } = useTranslation()
  const members = Object.entries(detail).filter(([name]) => !OF_CHANGES.includes(name))
  if (members.length === 0 && OF_CHANGES.some((name) => name in detail)) return null
  if (members.length === 0) return <Text size="sm">{t('audit.no-detail')}</Text>
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">{t('audit.member')}</th>
          <th scope="col">{t('audit.value')}</th>
        </tr>
      </thead>
      <tbody>
        {members.map(([name, value]) => (
          <tr key={name}>
            <th scope="row" className="light">
              {name}
            </th>
            <td className="wrap">{toText(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
