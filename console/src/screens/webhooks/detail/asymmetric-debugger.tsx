import { Alert, Button, Group, Stack, Text, Textarea, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../../frame/icons.tsx'
import { Form } from '../../../parts/form.tsx'
import { type AsymmetricDelivery, type AsymmetricVerdict, examineAsymmetric } from './asymmetric.ts'

const HEADERS = [
  ['id', 'webhook-id', ''],
  ['timestamp', 'webhook-timestamp', '1789128000'],
  ['signature', 'webhook-signature', 'v1,… v1a,…'],
] as const

/** Says which part of an asymmetric signature is wrong. What is pasted stays in this tab. */
export function AsymmetricDebugger({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
  const [given, setGiven] = useState<AsymmetricDelivery>({
    ...{ id: '', timestamp: '', signature: '', body: '' },
    publicKey: webhook.public_key ?? '',
  })
  const [verdict, setVerdict] = useState<AsymmetricVerdict | undefined>()
  const change = (members: Partial<AsymmetricDelivery>) => setGiven((before) => ({ ...before, ...members }))
  const examine = () => examineAsymmetric(given, Date.now(), webhook.previous_public_key).then(setVerdict)
  return (
    <Form onSubmit={() => void examine()}>
      <Stack maw={720}>
        <Text size="sm" c="dimmed">
          {t('signature.lead')}
        </Text>
        {HEADERS.map(([name, label, placeholder]) => (
          <TextInput
            key={name}
            label={label}
            placeholder={placeholder}
            required
            autoComplete="off"
            value={given[name]}
            onChange={({ currentTarget }) => change({ [name]: currentTarget.value })}
          />
        ))}
        <TextInput
          label={t('asymmetric.key')}
          placeholder="whpk_…"
          required
          autoComplete="off"
          value={given.publicKey}
          onChange={({ currentTarget }) => change({ publicKey: currentTarget.value })}
        />
        <Textarea
          label={t('signature.body')}
          description={t('signature.body-hint')}
          required
          autosize
          minRows={4}
          value={given.body}
          onChange={({ currentTarget }) => change({ body: currentTarget.value })}
        />
        <Group>
          <Button type="submit">{t('signature.do')}</Button>
        </Group>
        {verdict && (
          <Alert
            role="status"
            color={verdict === 'valid' ? 'teal' : 'red'}
            variant="outline"
            icon={<Icon name={verdict === 'valid' ? 'good' : 'bad'} />}
            title={t(`v1a.${verdict}`)}
          >
            <Text size="sm">{t(`v1a.${verdict}-text`)}</Text>
          </Alert>
        )}
      </Stack>
    </Form>
  )
}
