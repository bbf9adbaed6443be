import { Button, Fieldset, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { FieldErrors } from '../../parts/field-errors.tsx'
import { Textarea, TextInput } from '../../parts/fields.tsx'
import { SubmissionError } from '../../parts/problem.tsx'

interface ReadMetadataProps {
  account: string
  onRead: (read: Schemas['SamlMetadata']) => void
}

/** Reads the settings of a SAML provider from its metadata, pasted or from a URL. It stands inside the form that it fills. */
export function ReadMetadata({ account, onRead }: ReadMetadataProps) {
  const { t } = useTranslation()
  const part = useRef<HTMLFieldSetElement>(null)
  const [xml, setXml] = useState('')
  const [url, setUrl] = useState('')
  const read = useChange({
    make: () =>
      api.identity.connectionReadMetadata({
        path: { id: account },
        body: { ...(xml.trim() && { metadata: xml.trim() }), ...(url.trim() && { metadata_url: url.trim() }) },
      }),
    touches: [],
    onDone: ({ data }) => onRead(data),
  })
  const isEmpty = xml.trim() === '' && url.trim() === ''
  return (
    <Fieldset legend={t('connections.metadata')} ref={part}>
      <FieldErrors error={read.error} root={() => part.current}>
        {({ unshown, isShown }) => (
          <Stack gap="sm">
            <Text size="sm" c="dimmed">
              {t('connections.metadata-hint')}
            </Text>
            <Source
              xml={xml}
              onXml={setXml}
              url={url}
              onUrl={setUrl}
              onEnter={() => !isEmpty && read.mutate(undefined)}
            />
            {read.isError && <SubmissionError error={read.error} unshown={unshown} isShown={isShown} />}
            <Group>
              <Button
                variant="default"
                size="compact-md"
                disabled={isEmpty}
                loading={read.isPending}
                onClick={() => read.mutate(undefined)}
              >
                {t('connections.metadata-read')}
              </Button>
            </Group>
            {read.isSuccess && (
              <Text size="sm" role="status">
                {read.data.data.wants_signed_requests
                  ? t('connections.metadata-signed')
                  : t('connections.metadata-done')}
              </Text>
            )}
          </Stack>
        )}
      </FieldErrors>
    </Fieldset>
  )
}

interface SourceProps {
  xml: string
  onXml: (xml: string) => void
  url: string
  onUrl: (url: string) => void
  onEnter: () => void
}

/** Where the metadata is: the text itself, or its URL. */
function Source({ xml, onXml, url, onUrl, onEnter }: SourceProps) {
  const { t } = useTranslation()
  return (
    <>
      <Textarea
        field="metadata"
        label={t('connections.metadata-xml')}
        autosize
        minRows={3}
        maxRows={8}
        spellCheck={false}
        classNames={{ input: 'mono' }}
        value={xml}
        onChange={({ currentTarget: { value } }) => onXml(value)}
      />
      <TextInput
        field="metadata_url"
        label={t('connections.metadata-url')}
        placeholder="https://login.example.com/metadata"
        maxLength={2048}
        spellCheck={false}
        value={url}
        onChange={({ currentTarget: { value } }) => onUrl(value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return
          // The form around it is not submitted.
          event.preventDefault()
          onEnter()
        }}
      />
    </>
  )
}
