import { Button, Group, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Form, type FormChange } from './form.tsx'
import { ProblemCard } from './problem.tsx'

interface Steps {
  /** Labels of the steps, in their order. */
  names: readonly string[]
  /** Index of the step that is shown. */
  place: number
  /** Index of the last step that may be shown: the ones after it need its input. */
  lastOpen: number
  onShow: (index: number) => void
}

interface StepFormProps extends Steps {
  /** The change that the last step makes. */
  change: FormChange
  /** Label of the button of the last step. */
  label: string
  /** The call of the API that the last step makes, beside its button. */
  call: ReactNode
  children: ReactNode
}

/** A form in steps: each leads to the next one, and the last makes the change. */
export function StepForm({ names, place, lastOpen, onShow, change, label, call, children }: StepFormProps) {
  const { t } = useTranslation()
  const isLast = place === names.length - 1
  return (
    <Form onSubmit={() => (isLast ? change.mutate(undefined) : onShow(place + 1))}>
      <Stack maw={820} gap="lg">
        <StepBar names={names} place={place} lastOpen={lastOpen} onShow={onShow} />
        {children}
        {change.isError && <ProblemCard error={change.error} />}
        <Group>
          {place > 0 && (
            <Button variant="default" onClick={() => onShow(place - 1)}>
              {t('create.back')}
            </Button>
          )}
          <Button type="submit" loading={change.isPending} disabled={!isLast && place === lastOpen}>
            {isLast ? label : t('create.next')}
          </Button>
          {isLast && call}
        </Group>
      </Stack>
    </Form>
  )
}

function StepBar({ names, place, lastOpen, onShow }: Steps) {
  const { t } = useTranslation()
  return (
    <nav aria-label={t('create.steps')}>
      <ol className="steps">
        {names.map((name, index) => (
          <li key={name} data-done={index < place || undefined}>
            <Button
              size="compact-sm"
              variant={index === place ? 'filled' : 'default'}
              disabled={index > lastOpen}
              aria-current={index === place ? 'step' : undefined}
              onClick={() => onShow(index)}
            >
              {t('create.step', { number: index + 1, name })}
            </Button>
          </li>
        ))}
      </ol>
    </nav>
  )
}
