import { SegmentedControl, Stack, Switch, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { LANGUAGES } from '../../language/choice.ts'
import { Loaded } from '../../parts/loaded.tsx'
import { ProblemCard } from '../../parts/problem.tsx'

/** Which mails about webhooks the user gets (docs/contract/delivery.md#stopping-mails). */
export function MailChoices() {
  const { t } = useTranslation()
  const setting = useQuery({
    queryKey: ['mail-setting'],
    queryFn: ({ signal }) => api.webhook.webhookMailFindOne({ signal }),
  })
  const change = useChange({
    make: (body: Schemas['UpdateWebhookMail']) => api.webhook.webhookMailUpdate({ body }),
    touches: [['mail-setting']],
  })
  return (
    <Loaded query={setting} height={138}>
      {({ data }) => (
        <Stack>
          <Switch
            label={t('prefs.mails-webhooks')}
            description={t('prefs.mails-webhooks-text')}
            checked={!data.is_stopped}
            disabled={change.isPending}
            onChange={({ currentTarget }) => change.mutate({ is_stopped: !currentTarget.checked })}
          />
          <div>
            <Text size="sm" fw={500} mb={4}>
              {t('prefs.mails-language')}
            </Text>
            <SegmentedControl
              aria-label={t('prefs.mails-language')}
              fullWidth
              transitionDuration={0}
              value={data.language}
              onChange={(language) => change.mutate({ language: language as 'en' })}
              data={LANGUAGES.map((value) => ({ value, label: value === 'de' ? 'Deutsch' : 'English' }))}
            />
          </div>
          {change.isError && <ProblemCard error={change.error} />}
        </Stack>
      )}
    </Loaded>
  )
}
