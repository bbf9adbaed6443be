import { ActionIcon, Alert, Button, Group, Kbd, Stack, Text, TextInput } from '@mantine/core'
import { useDisclosure, useHotkeys } from '@mantine/hooks'
import { isProblem } from '@signalbox/client'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Dialog } from '../parts/dialog.tsx'
import { ProblemCard } from '../parts/problem.tsx'
import type { Access } from './access.ts'
import { api } from './api.ts'
import { Icon } from './icons.tsx'
import { useAccess } from './session.tsx'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A place in the console. */
interface Found {
  to: string
  search?: Record<string, string>
}

/** What an id may be of, in the order in which it is looked for: the call that reads it, and where it is shown. */
const READERS = [
  ['webhook-dispatch:find-one', (id: string) => api.webhook.webhookDispatchFindOne({ path: { id } }), '/deliveries/'],
  ['webhook:find-one', (id: string) => api.webhook.webhookFindOne({ path: { id } }), '/webhooks/'],
  ['event-occurrence:find-one', (id: string) => api.webhook.eventOccurrenceFindOne({ path: { id } }), '/events/'],
  ['user:find-one', (id: string) => api.identity.userFindOne({ path: { id } }), '/users/'],
  ['account:find-one', (id: string) => api.identity.accountFindOne({ path: { id } }), '/accounts/'],
  ['oauth-client:find-one', (id: string) => api.oauth.oauthClientFindOne({ path: { id } }), '/apps/'],
] as const

/** Finds what a text is: an id of anything, an e-mail address, a URL, the name of an event type. Undefined for nothing known. */
async function find(given: string, { may }: Access): Promise<Found | undefined> {
  const text = given.trim()
  if (UUID.test(text)) {
    const id = text.toLowerCase()
    const readers = READERS.filter(([permission]) => may(permission))
    const answers = await Promise.all(
      readers.map(([, read, to]) =>
        read(id).then(
          () => ({ to: `${to}${id}` }),
          (error: unknown) => {
            if (isProblem(error, 'not_found', 'permission_denied')) return undefined
            throw error
          },
        ),
      ),
    )
    return answers.find((one) => one !== undefined)
  }
  if (text.includes('://')) return { to: '/webhooks', search: { q: text } }
  if (text.includes('@')) return { to: '/users', search: { q: text } }
  if (/^[a-z0-9-]+\.[a-z0-9-]+$/.test(text)) return { to: '/deliveries', search: { event: text } }
  return text === '' ? undefined : { to: '/webhooks', search: { q: text } }
}

/** One box that takes any id, e-mail address, URL or event name, and opens what it is. */
export function SearchBox() {
  const { t } = useTranslation()
  const [isOpen, { open, close }] = useDisclosure(false)
  const [text, setText] = useState('')
  const navigate = useNavigate()
  const access = useAccess()
  const search = useMutation({
    mutationFn: () => find(text, access),
    onSuccess: (found) => {
      if (!found) return
      close()
      setText('')
      void navigate(found)
    },
  })
  useHotkeys([
    ['mod+K', open],
    ['/', open],
  ])
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    search.mutate()
  }
  return (
    <>
      <Button
        variant="default"
        size="xs"
        h={32}
        visibleFrom="sm"
        leftSection={<Icon name="search" size={16} />}
        rightSection={<Kbd size="xs">/</Kbd>}
        onClick={open}
      >
        {t('search.title')}
      </Button>
      <ActionIcon variant="default" size={32} hiddenFrom="sm" onClick={open} aria-label={t('search.title')}>
        <Icon name="search" />
      </ActionIcon>
      <Dialog title={t('search.title')} isOpen={isOpen} onClose={close}>
        <form onSubmit={submit}>
          <Stack>
            <TextInput
              label={t('search.label')}
              description={t('search.hint')}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
              autoComplete="off"
              data-autofocus
            />
            {search.isSuccess && search.data === undefined && (
              <Alert color="gray" role="status">
                <Text size="sm">{t('search.none')}</Text>
              </Alert>
            )}
            {search.isError && <ProblemCard error={search.error} />}
            <Group justify="flex-end">
              <Button type="submit" loading={search.isPending}>
                {t('search.open')}
              </Button>
            </Group>
          </Stack>
        </form>
      </Dialog>
    </>
  )
}
