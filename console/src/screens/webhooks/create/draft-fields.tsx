import { Checkbox, Radio, Stack, Title } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../../frame/icons.tsx'
import { useAccess } from '../../../frame/session.tsx'
import { settings } from '../../../frame/settings.ts'
import { AccountSelect } from '../../../parts/account-select.tsx'
import { PasswordInput } from '../../../parts/fields.tsx'
import { NameFields } from '../../../parts/name-fields.tsx'
import { URL_HINT } from '../../../parts/words/url-hint.ts'
import { MaxPerSecondInput } from '../max-per-second.tsx'
import { ModeSelect } from '../mode.tsx'
import { HeaderFields } from '../own-headers.tsx'
import { ResourceIdsInput } from '../resource-ids.tsx'
import { UrlInput } from '../url-input.tsx'
import type { Draft, OnChange } from './draft.ts'
import { checkUrl, URL_RULES } from './url-checks.ts'

/** The service's own receiver, which development allows. */
const SINK = settings.environment === 'development' ? `${location.origin}/api/v3/webhook/sink` : undefined

/** Says of each rule of a URL whether it is kept. */
function UrlChecks({ url }: { url: string }) {
  const { t } = useTranslation()
  const checks = checkUrl(url, { sink: SINK, allowsPrivate: settings.allowsPrivateTargets })
  if (!checks) return null
  return (
    <ul className="checks" aria-live="polite">
      {URL_RULES.filter((rule) => checks[rule] !== undefined).map((rule) => (
        <li key={rule} data-kept={checks[rule]}>
          <Icon name={checks[rule] ? 'good' : 'warn'} size={14} />
          {t(`create.rule.${rule}`)}
          <span className="visually-hidden">{checks[rule] ? t('create.kept') : t('create.broken')}</span>
        </li>
      ))}
    </ul>
  )
}

/** Fields of the first step: where it posts to, and how. */
export function EndpointFields({ draft, onChange }: { draft: Draft; onChange: OnChange }) {
  const { t } = useTranslation()
  const { mayEverywhere } = useAccess()
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        {t('create.endpoint')}
      </Title>
      <ModeSelect value={draft.mode} onChange={(mode) => onChange({ mode })} />
      {draft.mode === 'push' && (
        <>
          <UrlInput value={draft.url} onChange={(url) => onChange({ url })} hint={t(URL_HINT)} />
          <UrlChecks url={draft.url} />
        </>
      )}
      <NameFields draft={draft} onChange={onChange} />
      {draft.mode === 'push' && (
        <>
          <MaxPerSecondInput value={draft.maxPerSecond} onChange={(maxPerSecond) => onChange({ maxPerSecond })} />
          <HeaderFields rows={draft.headers} onChange={(headers) => onChange({ headers })} />
        </>
      )}
      <Checkbox
        label={t('asymmetric.title')}
        description={t('asymmetric.lead')}
        checked={draft.isAsymmetric}
        onChange={({ currentTarget }) => onChange({ isAsymmetric: currentTarget.checked })}
      />
      {mayEverywhere('webhook:import') && (
        <PasswordInput
          field="secret"
          label={t('import.title')}
          description={t('import.hint')}
          placeholder="whsec_…"
          maxLength={100}
          autoComplete="off"
          value={draft.secret}
          onChange={({ currentTarget }) => onChange({ secret: currentTarget.value })}
          visibilityToggleButtonProps={{ 'aria-label': t('secret.show') }}
        />
      )}
    </Stack>
  )
}

/** Fields of the second step: whose events it gets. */
export function ScopeFields({ draft, onChange, mayGlobal }: { draft: Draft; onChange: OnChange; mayGlobal: boolean }) {
  const { t } = useTranslation()
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        {t('webhooks.scope')}
      </Title>
      <Radio.Group
        aria-label={t('webhooks.scope')}
        value={draft.isGlobal ? 'global' : 'account'}
        onChange={(value) => onChange({ isGlobal: value === 'global' })}
      >
        <Stack gap="xs">
          <Radio value="global" label={t('webhooks.global')} description={t('create.global')} disabled={!mayGlobal} />
          <Radio value="account" label={t('webhooks.of-account')} description={t('create.account')} />
        </Stack>
      </Radio.Group>
      {!draft.isGlobal && <AccountSelect value={draft.account} onChange={(account) => onChange({ account })} />}
      <ResourceIdsInput value={draft.resources} onChange={(resources) => onChange({ resources })} />
    </Stack>
  )
}
