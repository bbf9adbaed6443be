import { Checkbox, Stack, Switch, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { GroupError } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { ProblemCard } from '../../parts/problem.tsx'

/** Contacts of a webhook, at most (docs/contract/webhooks.md#contacts). */
const CONTACTS_LIMIT = 10

type Webhook = Schemas['Webhook']

/** Who gets mails about the webhook of an account, beside the administrators of the account. */
export function Contacts({ webhook, onSaved }: { webhook: Webhook; onSaved?: () => void }) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const { account } = webhook
  const members = useQuery({
    queryKey: ['members', account, 'contacts'],
    queryFn: ({ signal }) =>
      api.identity.accountMemberFindAll({ path: { id: account ?? '' }, query: { page_size: 200 }, signal }),
    enabled: account !== null && may('account-member:find-all'),
  })
  if (account === null || !may('account-member:find-all')) return null
  return (
    <Stack gap="xs">
      <Title order={2} size="h5">
        {t('contacts.title')}
      </Title>
      <Text size="sm" c="dimmed">
        {t('contacts.text')}
      </Text>
      <Loaded query={members} height={80}>
        {({ data }) => <ContactsForm webhook={webhook} members={data} onSaved={onSaved} />}
      </Loaded>
    </Stack>
  )
}

interface ContactsFormProps {
  webhook: Webhook
  members: readonly Schemas['AccountMember'][]
  onSaved: (() => void) | undefined
}

function ContactsForm({ webhook, members, onSaved }: ContactsFormProps) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const id = webhook.document_id
  // Who has left the account since gets no mails, and is not sent again.
  const before = webhook.contacts.filter((contact) => members.some(({ user }) => user === contact))
  const [chosen, setChosen] = useState<readonly string[]>(before)
  const save = useChange({
    make: () => api.webhook.webhookUpdate({ path: { id }, body: { contacts: [...chosen] } }),
    touches: [['webhook', id], ['webhooks']],
    ...(onSaved && { onDone: onSaved }),
  })
  const isReadOnly = !may('webhook:update')
  const isSame =
    chosen.length === webhook.contacts.length && webhook.contacts.every((contact) => chosen.includes(contact))
  return (
    <ChangeForm
      change={save}
      label={t('contacts.save')}
      isReadOnly={isReadOnly}
      isDisabled={isSame || chosen.length > CONTACTS_LIMIT}
      buttonAt="start"
    >
      {members.map(({ user, name, email }) => (
        <Checkbox
          key={user}
          label={name ?? email ?? user}
          description={name === null ? undefined : email}
          disabled={isReadOnly}
          checked={chosen.includes(user)}
          onChange={({ currentTarget: { checked } }) =>
            setChosen((all) => (checked ? [...all, user] : all.filter((contact) => contact !== user)))
          }
        />
      ))}
      <GroupError field="contacts" />
      {chosen.length > CONTACTS_LIMIT && <Text size="sm">{t('contacts.over', { limit: CONTACTS_LIMIT })}</Text>}
      {save.isSuccess && isSame && <Text role="status">{t('settings.saved')}</Text>}
    </ChangeForm>
  )
}

/** Whether the signed-in user gets mails about a webhook. Those about global ones go to who may change them. */
export function OwnMails({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const setting = useQuery({
    queryKey: ['mail-setting'],
    queryFn: ({ signal }) => api.webhook.webhookMailFindOne({ signal }),
    enabled: webhook.is_global ? may('webhook:update') : webhook.account !== null,
  })
  const change = useChange({
    make: (stopped_webhooks: string[]) => api.webhook.webhookMailUpdate({ body: { stopped_webhooks } }),
    touches: [['mail-setting']],
  })
  const found = setting.data?.data
  if (!found) return null
  const { document_id: id } = webhook
  const reason = webhook.is_global ? t('contacts.own-global') : t('contacts.own-text')
  const others = found.stopped_webhooks.filter((stopped) => stopped !== id)
  return (
    <>
      <Switch
        label={t('contacts.own')}
        description={found.is_stopped ? t('contacts.own-stopped') : reason}
        checked={!found.is_stopped && others.length === found.stopped_webhooks.length}
        disabled={found.is_stopped || change.isPending}
        onChange={({ currentTarget }) => change.mutate(currentTarget.checked ? others : [...others, id])}
      />
      {change.isError && <ProblemCard error={change.error} />}
    </>
  )
}
