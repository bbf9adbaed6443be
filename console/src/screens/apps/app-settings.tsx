import { Checkbox, Group, Switch } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { CheckboxGroup, Textarea, TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { SCOPES } from './scopes.ts'

type App = Schemas['OauthClient']

const readLines = (text: string) => text.split(/\s+/).filter((part) => part !== '')

/** Changes what an app may ask for, and where it is sent back to. */
export function AppSettings({ app }: { app: App }) {
  const { t } = useTranslation()
  const [draft, setDraft] = useState({
    name: app.name,
    publisher: app.publisher ?? '',
    redirects: app.redirect_uris.join('\n'),
    logouts: app.post_logout_redirect_uris.join('\n'),
    scopes: app.scopes,
    isFirstParty: app.first_party,
  })
  const change = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part })
  const save = useChange({
    make: () => {
      const body = {
        name: draft.name.trim(),
        publisher: draft.publisher.trim() || null,
        redirect_uris: readLines(draft.redirects),
        post_logout_redirect_uris: readLines(draft.logouts),
        scopes: draft.scopes,
        first_party: draft.isFirstParty,
      }
      return api.oauth.oauthClientUpdate({ path: { id: app.document_id }, body })
    },
    touches: [['app', app.document_id], ['apps']],
  })
  return (
    <ChangeForm change={save} label={t('settings.save')} buttonAt="start" maxWidth={640}>
      <TextInput
        field="name"
        label={t('apps.name')}
        required
        value={draft.name}
        onChange={({ currentTarget: { value } }) => change({ name: value })}
      />
      <TextInput
        field="publisher"
        label={t('apps.publisher')}
        value={draft.publisher}
        onChange={({ currentTarget: { value } }) => change({ publisher: value })}
      />
      <Textarea
        field="redirect_uris"
        label={t('apps.redirects')}
        description={t('apps.redirects-hint')}
        autosize
        minRows={2}
        value={draft.redirects}
        onChange={({ currentTarget: { value } }) => change({ redirects: value })}
      />
      <Textarea
        field="post_logout_redirect_uris"
        label={t('apps.logouts')}
        autosize
        minRows={1}
        value={draft.logouts}
        onChange={({ currentTarget: { value } }) => change({ logouts: value })}
      />
      <CheckboxGroup
        field="scopes"
        label={t('apps.scopes')}
        value={draft.scopes}
        onChange={(values) => change({ scopes: SCOPES.filter((scope) => values.includes(scope)) })}
      >
        <Group gap="sm" mt="xs">
          {SCOPES.map((scope) => (
            <Checkbox key={scope} value={scope} label={scope} />
          ))}
        </Group>
      </CheckboxGroup>
      <Switch
        label={t('apps.first-party')}
        description={t('apps.first-party-text')}
        checked={draft.isFirstParty}
        onChange={({ currentTarget: { checked } }) => change({ isFirstParty: checked })}
      />
    </ChangeForm>
  )
}
