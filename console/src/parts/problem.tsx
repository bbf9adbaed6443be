import { Alert, Button, Code, Group, List, Stack, Text } from '@mantine/core'
import { ConnectionError, isProblem, ProblemError } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { findEntrance, needsStepUp, toEntrance, toStepUp } from '../frame/api.ts'
import { Icon } from '../frame/icons.tsx'
import { CopyText } from './copy-text.tsx'
import { ProofLink } from './proof-link.tsx'
import { FieldMessage } from './refusal/field-message.tsx'
import type { FieldError } from './refusal/field-text.ts'
import { useRefusalTexts } from './refusal/refusal-texts.ts'

/** An error, with what to do about it: the missing permission, a fresh proof, or another try. */
export function ProblemCard({
  error,
  onRetry,
  fields,
}: {
  error: unknown
  onRetry?: () => void
  /** The errors about fields. Default: all that the problem names. */
  fields?: readonly FieldError[]
}) {
  const { t } = useTranslation()
  if (isProblem(error, 'permission_denied')) return <NoPermission permission={error.problem.missing?.permission} />
  const entrance = findEntrance(error)
  // Its entry has the address at which the session is proven.
  const isAddress = isProblem(error, 'connection_required')
  const listed = fields ?? (error instanceof ProblemError ? (error.problem.errors ?? []) : [])
  return (
    <Alert color="red" variant="outline" icon={<Icon name="warn" />} title={t('problem.title')} role="alert">
      <Stack gap="xs">
        <ProblemText error={error} />
        {listed.length > 0 && (
          <List size="sm">
            {listed.map((item) => (
              <List.Item key={`${item.path} ${item.code} ${item.message}`}>
                <Code>{item.path}</Code> {isAddress ? item.message : <FieldMessage error={item} />}
              </List.Item>
            ))}
          </List>
        )}
        {error instanceof ProblemError && (
          <Group gap="xs">
            <Code>{error.code}</Code>
            <Text size="xs" c="dimmed">
              {t('problem.request')}
            </Text>
            <CopyText text={error.requestId} />
          </Group>
        )}
        <Group>
          {needsStepUp(error) && <ProofLink to={toStepUp}>{t('problem.step-up')}</ProofLink>}
          {entrance && <ProofLink to={(next) => toEntrance(entrance, next)}>{t('problem.enter')}</ProofLink>}
          {onRetry && (
            <Button size="xs" variant="default" onClick={onRetry}>
              {t('problem.retry')}
            </Button>
          )}
        </Group>
      </Stack>
    </Alert>
  )
}

/** Explanation of an error: in English the `detail` of the API, in another language a sentence with it below. */
function ProblemText({ error }: { error: unknown }) {
  const { t } = useTranslation()
  const { language, told } = useRefusalTexts()
  if (!(error instanceof ProblemError))
    return <Sentence>{error instanceof ConnectionError ? t('problem.offline') : String(error)}</Sentence>
  const { detail } = error.problem
  if (language === 'en') return <Sentence>{detail}</Sentence>
  const text = told?.texts[`problem.${error.code}`]
  if (text === undefined) return <Sentence lang="en">{detail}</Sentence>
  return (
    <>
      <Sentence>{text}</Sentence>
      <Text size="xs" c="dimmed" className="wrap" lang="en">
        {detail}
      </Text>
    </>
  )
}

function Sentence({ lang, children }: { lang?: string; children: string }) {
  return (
    <Text size="sm" className="wrap" lang={lang}>
      {children}
    </Text>
  )
}

/** Result of a submission of a form: a sentence where its inputs show every error, else the card with the others. */
export function SubmissionError({
  error,
  unshown,
  isShown,
}: {
  error: unknown
  /** Errors that no input shows. */
  unshown: readonly FieldError[]
  /** Whether an input shows an error. */
  isShown: boolean
}) {
  const { t } = useTranslation('console')
  if (!isShown || unshown.length > 0) return <ProblemCard error={error} fields={unshown} />
  return (
    <Text size="sm" role="alert" className="field-errors" data-testid="field-errors">
      <Icon name="warn" size={14} /> {t('problem.fields')}
    </Text>
  )
}

/** Card in place of a screen that the user may not see. */
export function NoPermission({ permission }: { permission?: string | undefined }) {
  const { t } = useTranslation()
  return (
    <Alert color="gray" variant="outline" icon={<Icon name="warn" />} title={t('problem.forbidden')}>
      {permission && (
        <Stack gap={6} align="flex-start">
          <Text size="sm">{t('problem.forbidden-text')}</Text>
          <Code>{permission}</Code>
          <Text size="sm">{t('problem.forbidden-who')}</Text>
        </Stack>
      )}
    </Alert>
  )
}
