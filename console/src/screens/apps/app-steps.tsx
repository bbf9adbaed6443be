import { Card, Checkbox, Group, Radio, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../frame/icons.tsx'
import { Facts } from '../../parts/facts.tsx'
import { CheckboxGroup, Textarea, TextInput } from '../../parts/fields.tsx'
import { type AppDraft, GRANT_TYPES } from './app-draft.ts'
import { checkRedirects, readRedirects } from './redirect-checks.ts'
import { SCOPES } from './scopes.ts'

interface FieldsProps {
  draft: AppDraft
  onChange: (part: Partial<AppDraft>) => void
}

/** Step 1: its name, and whether it can keep a secret. */
export function TypeFields({ draft, onChange }: FieldsProps) {
  const { t } = useTranslation()
  return (
    <Stack>
      <TextInput
        field="name"
        label={t('apps.name')}
        description={t('apps.name-hint')}
        required
        value={draft.name}
        onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
      />
      <Radio.Group
        label={t('apps.type')}
        value={draft.type}
        onChange={(value) => onChange({ type: value === 'public' ? 'public' : 'confidential' })}
      >
        <Stack gap="xs" mt="xs">
          {(['confidential', 'public'] as const).map((item) => (
            <Radio key={item} value={item} label={t(`apps.type.${item}`)} description={t(`apps.type.${item}-text`)} />
          ))}
        </Stack>
      </Radio.Group>
      <Radio.Group
        label={t('apps.kind')}
        value={draft.applicationType}
        onChange={(value) => onChange({ applicationType: value === 'native' ? 'native' : 'web' })}
      >
        <Stack gap="xs" mt="xs">
          {(['web', 'native'] as const).map((item) => (
            <Radio key={item} value={item} label={t(`apps.kind.${item}`)} description={t(`apps.kind.${item}-text`)} />
          ))}
        </Stack>
      </Radio.Group>
    </Stack>
  )
}

/** Step 2: where it is sent back to, each URI with what the API would say. */
export function RedirectFields({ draft, onChange }: FieldsProps) {
  const { t } = useTranslation()
  const checked = checkRedirects(draft.redirects, draft.applicationType)
  return (
    <Stack gap="xs">
      <Textarea
        field="redirect_uris"
        label={t('apps.redirects')}
        description={t('apps.redirects-hint')}
        placeholder="https://app.example.com/callback"
        autosize
        minRows={2}
        value={draft.redirects}
        onChange={({ currentTarget }) => onChange({ redirects: currentTarget.value })}
      />
      <ul className="checks" aria-live="polite">
        {checked.map(({ uri, finding, isRefused }) => (
          <li key={uri} data-kept={finding === 'loopback' ? undefined : !isRefused} className="wrap">
            <Icon name={finding === undefined ? 'good' : 'warn'} size={14} />
            <span className="mono">{uri}</span> {t(`apps.redirect.${finding ?? 'kept'}`)}
          </li>
        ))}
      </ul>
    </Stack>
  )
}

/** Step 3: what it may ask for, and how it gets its tokens. */
export function ScopeFields({ draft, onChange }: FieldsProps) {
  const { t } = useTranslation()
  return (
    <Stack>
      <CheckboxGroup
        field="scopes"
        label={t('apps.scopes')}
        value={draft.scopes}
        onChange={(values) => onChange({ scopes: SCOPES.filter((scope) => values.includes(scope)) })}
      >
        <Stack gap="xs" mt="xs">
          {SCOPES.map((scope) => (
            <Checkbox key={scope} value={scope} label={scope} description={t(`scope.${scope}`)} />
          ))}
        </Stack>
      </CheckboxGroup>
      <CheckboxGroup
        field="grant_types"
        label={t('apps.grants')}
        value={draft.grants}
        onChange={(values) => onChange({ grants: GRANT_TYPES.filter((grant) => values.includes(grant)) })}
      >
        <Stack gap="xs" mt="xs">
          {GRANT_TYPES.map((grant) => (
            <Checkbox
              key={grant}
              value={grant}
              label={grant.split(':').at(-1)}
              description={t(`apps.grant.${grant.split(':').at(-1) as 'device_code'}`)}
            />
          ))}
        </Stack>
      </CheckboxGroup>
      <Text size="sm">{t('apps.pkce')}</Text>
    </Stack>
  )
}

/** Step 4: what will be registered. */
export function ReviewApp({ draft }: { draft: AppDraft }) {
  const { t } = useTranslation()
  return (
    <Card withBorder>
      <Facts
        lines={[
          [t('apps.name'), draft.name.trim()],
          [t('apps.type'), t(`apps.type.${draft.type}`)],
          [t('apps.kind'), t(`apps.kind.${draft.applicationType}`)],
          [
            t('apps.redirects'),
            <Group key="r" gap={4}>
              {readRedirects(draft.redirects).join(', ') || '–'}
            </Group>,
          ],
          [t('apps.scopes'), draft.scopes.join(', ')],
          [t('apps.grants'), draft.grants.map((grant) => grant.split(':').at(-1)).join(', ')],
        ]}
      />
    </Card>
  )
}
