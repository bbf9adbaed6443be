import { Checkbox, Group, Switch } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { EditForm } from '../../parts/edit-form.tsx'
import { CheckboxGroup, Textarea, TextInput } from '../../parts/fields.tsx'
import { useRowEdit } from '../../parts/row-edit.ts'
import { SCOPES } from './scopes.ts'

type App = Schemas['OauthClient']

const readLines = (text: string) => text.split(/\s+/).filter((part) => part !== '')

const fieldsOf = (app: App) => ({
  name: app.name,
  publisher: app.publisher ?? '',
  redirects: app.redirect_uris.join('\n'),
  logouts: app.post_logout_redirect_uris.join('\n'),
  scopes: app.scopes,
  isFirstParty: app.first_party,
})

type AppFields = ReturnType<typeof fieldsOf>

/** The change of these fields as the API takes it. Pure. */
function toBody(changed: Partial<AppFields>): Schemas['UpdateOauthClient'] {
  const { name, publisher, redirects, logouts, scopes, isFirstParty } = changed
  return {
    ...(name !== undefined && { name: name.trim() }),
    ...(publisher !== undefined && { publisher: publisher.trim() || null }),
    ...(redirects !== undefined && { redirect_uris: readLines(redirects) }),
    ...(logouts !== undefined && { post_logout_redirect_uris: readLines(logouts) }),
    ...(scopes && { scopes }),
    ...(isFirstParty !== undefined && { first_party: isFirstParty }),
  }
}

/** Changes what an app may ask for, and where it is sent back to. */
export function AppSettings({ app }: { app: App }) {
  const { t } = useTranslation()
  const path = { id: app.document_id }
  const edit = useRowEdit({
    row: app,
    queryKey: ['app', app.document_id],
    fieldsOf,
    send: (changed, ifMatch) => api.oauth.oauthClientUpdate({ path, body: toBody(changed), ifMatch }),
    touches: [['apps']],
  })
  const { draft, change } = edit
  return (
    <EditForm
      edit={edit}
      labels={{
        name: t('apps.name'),
        publisher: t('apps.publisher'),
        redirects: t('apps.redirects'),
        logouts: t('apps.logouts'),
        scopes: t('apps.scopes'),
        isFirstParty: t('apps.first-party'),
      }}
      maxWidth={640}
    >
      <Fields draft={draft} onChange={change} />
    </EditForm>
  )
}

function Fields({ draft, onChange: change }: { draft: AppFields; onChange: (part: Partial<AppFields>) => void }) {
  const { t } = useTranslation()
  return (
    <>
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
    </>
  )
}
