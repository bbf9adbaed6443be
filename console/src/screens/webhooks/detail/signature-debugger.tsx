import { Button, Group, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Form } from '../../../parts/form.tsx'
import { type SignatureKind, SignatureKindChoice } from '../signature-kind.tsx'
import { AsymmetricDebugger } from './asymmetric-debugger.tsx'
import { examine, type SignatureVerdict } from './signature.ts'
import { BodyInput, Verdict } from './verdict.tsx'

/** Examines a signature: of the secret, or of the key of a webhook with asymmetric signatures. */
export function SignatureDebugger({ webhook }: { webhook: Schemas['Webhook'] }) {
  const [kind, setKind] = useState<SignatureKind>('secret')
  if (webhook.public_key === null) return <SecretDebugger />
  return (
    <Stack>
      <SignatureKindChoice value={kind} onChange={setKind} />
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
        <BodyInput value={body} onChange={setBody} />
        <Group>
          <Button type="submit">{t('signature.do')}</Button>
        </Group>
        {verdict && (
          <Verdict
            isValid={verdict === 'valid'}
            title={t(`signature.${verdict}`)}
            text={t(`signature.${verdict}-text`)}
          />
        )}
      </Stack>
    </Form>
  )
}
