import { Alert, Button, Group, PasswordInput, SegmentedControl, Stack, Text, Textarea, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Icon } from '../../../frame/icons.tsx'
import { Form } from '../../../parts/form.tsx'
import { AsymmetricDebugger } from './asymmetric-debugger.tsx'
import { examine, type SignatureVerdict } from './signature.ts'

/** Examines a signature: of the secret, or of the key of a webhook with asymmetric signatures. */
export function SignatureDebugger({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
  const [kind, setKind] = useState('secret')
  if (webhook.public_key === null) return <SecretDebugger />
  return (
    <Stack>
      <Group>
        <SegmentedControl
          size="xs"
          transitionDuration={0}
          aria-label={t('v1a.kind')}
          value={kind}
          onChange={setKind}
          data={[
            { value: 'secret', label: t('signature.secret') },
            { value: 'key', label: t('asymmetric.key') },
          ]}
        />
      </Group>
      {kind === 'secret' ? <SecretDebugger /> : <AsymmetricDebugger webhook={webhook} />}
    </Stack>
  )
}

/** Says which part of a signature is wrong. What is pasted stays in this tab. */
function SecretDebugger() {
  const { t } = useTranslation()
  const [header, setHeader] = useState('')
  const [secret, setSecret] = useState('')
  const [body, setBody] = useState('')
  const [verdict, setVerdict] = useState<SignatureVerdict | undefined>()
  return (
    <Form onSubmit={() => void examine({ header, secret, body }, Date.now()).then(setVerdict)}>
      <Stack maw={720}>
        <Text size="sm" c="dimmed">
          {t('signature.lead')}
        </Text>
        <TextInput
          label="X-Service-Signature"
          placeholder="t=1789128000,v1=…"
          required
          value={header}
          onChange={({ currentTarget }) => setHeader(currentTarget.value)}
          autoComplete="off"
        />
        <PasswordInput
          label={t('signature.secret')}
          required
          value={secret}
          onChange={({ currentTarget }) => setSecret(currentTarget.value)}
          autoComplete="off"
          visibilityToggleButtonProps={{ 'aria-label': t('secret.show') }}
        />
        <Textarea
          label={t('signature.body')}
          description={t('signature.body-hint')}
          required
          autosize
          minRows={4}
          value={body}
          onChange={({ currentTarget }) => setBody(currentTarget.value)}
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
            title={t(`signature.${verdict}`)}
          >
            <Text size="sm">{t(`signature.${verdict}-text`)}</Text>
          </Alert>
        )}
      </Stack>
    </Form>
  )
}
