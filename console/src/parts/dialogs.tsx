import { Button, Checkbox, Code, CopyButton, Group, Stack, Text, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useUnsaved } from '../frame/unsaved.ts'
import { useOnline } from '../frame/use-online.ts'
import { Dialog } from './dialog.tsx'
import { download } from './download.ts'
import { ProblemCard } from './problem.tsx'

interface ConfirmProps {
  /** The question, with the name of its object where there is more than one. */
  title: string
  children: ReactNode
  /** Label of the confirming button. */
  label: string
  isOpen: boolean
  onClose: () => void
  onConfirm: () => void
  /** The change that `onConfirm` makes. */
  change: { isPending: boolean; error: unknown }
  /** Destroys something: the name that has to be typed. */
  typed?: string
  /** Whether what `children` ask for is given. Default: true. */
  isReady?: boolean
}

/** Asks before something is done that cannot be taken back. */
export function ConfirmDialog(props: ConfirmProps) {
  const { title, children, label, isOpen, onClose, onConfirm, change, typed, isReady = true } = props
  const { t } = useTranslation()
  const isOnline = useOnline()
  const [text, setText] = useState('')
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose}>
      <Stack>
        <div className="small">{children}</div>
        {typed !== undefined && (
          <TextInput
            label={t('dialog.type', { name: typed })}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            autoComplete="off"
          />
        )}
        {!isOnline && <Text size="sm">{t('banner.offline')}</Text>}
        {change.error !== null && change.error !== undefined && <ProblemCard error={change.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t('dialog.cancel')}
          </Button>
          <Button
            {...(typed !== undefined && { color: 'red' })}
            loading={change.isPending}
            disabled={!isOnline || !isReady || (typed !== undefined && text !== typed)}
            onClick={onConfirm}
          >
            {label}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  )
}

/** Shows a secret the only time that the service tells it. It closes by its button alone, and keeps the value nowhere. */
export function SecretDialog({
  title,
  name,
  secret,
  children,
  onDone,
}: {
  title: string
  /** The name of the variable that holds it. */
  name: string
  secret: string
  children?: ReactNode
  onDone: () => void
}) {
  const { t } = useTranslation()
  const [isShown, setIsShown] = useState(false)
  const [isTaken, setIsTaken] = useState(false)
  useUnsaved(!isTaken)
  const [isStored, setIsStored] = useState(false)
  return (
    <Dialog title={title} isOpen>
      <Stack>
        <Text size="sm">{t('secret.once')}</Text>
        {children}
        <Group wrap="nowrap">
          <Code block className="wrap" flex={1} data-testid="secret">
            {isShown ? secret : '•'.repeat(32)}
          </Code>
          <Button
            size="xs"
            variant="default"
            onClick={() => {
              setIsShown(!isShown)
              setIsTaken(true)
            }}
          >
            {isShown ? t('secret.hide') : t('secret.show')}
          </Button>
        </Group>
        <TakeSecret name={name} secret={secret} onTaken={() => setIsTaken(true)} />
        <Checkbox
          label={t('secret.stored')}
          description={isTaken ? undefined : t('secret.take-first')}
          disabled={!isTaken}
          checked={isStored}
          onChange={(event) => setIsStored(event.currentTarget.checked)}
        />
        <Group justify="flex-end">
          <Button disabled={!isStored} onClick={onDone}>
            {t('secret.done')}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  )
}

/** Takes a secret without showing it. */
function TakeSecret({ name, secret, onTaken }: { name: string; secret: string; onTaken: () => void }) {
  const { t } = useTranslation()
  return (
    <Group gap="xs">
      <CopyButton value={secret}>
        {({ copied, copy }) => (
          <Button
            size="xs"
            variant="default"
            onClick={() => {
              copy()
              onTaken()
            }}
          >
            {copied ? t('copy.done') : t('secret.copy')}
          </Button>
        )}
      </CopyButton>
      <Button
        size="xs"
        variant="default"
        onClick={() => {
          download(`${name}=${secret}\n`, `${name.toLowerCase()}.env`, 'text/plain')
          onTaken()
        }}
      >
        {t('secret.download')}
      </Button>
    </Group>
  )
}
