import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Form } from '../../../parts/form.tsx'
import { type AsymmetricDelivery, type AsymmetricVerdict, examineAsymmetric } from './asymmetric.ts'
import { BodyInput, Verdict } from './verdict.tsx'

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
        <BodyInput value={given.body} onChange={(body) => change({ body })} />
        <Group>
          <Button type="submit">{t('signature.do')}</Button>
        </Group>
        {verdict && (
          <Verdict isValid={verdict === 'valid'} title={t(`v1a.${verdict}`)} text={t(`v1a.${verdict}-text`)} />
        )}
      </Stack>
    </Form>
  )
}
