import { Button, Group } from '@mantine/core'
import { type ReactNode, useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { findErrorsOf, readFieldErrors } from './field-errors.tsx'
import { CheckedForm, type FormChange } from './form.tsx'

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
  /** The members of the body that each step sets: a step is shown again when the API refuses one of its members. */
  fields: readonly (readonly string[])[]
  children: ReactNode
}

/** The first step whose members have an error; -1 without one. Pure. */
function findRefused(error: unknown, fields: StepFormProps['fields']): number {
  const errors = readFieldErrors(error)
  return fields.findIndex((names) => names.some((name) => findErrorsOf(errors, name).length > 0))
}

/** A form in steps: each leads to the next one, and the last makes the change. */
export function StepForm({ names, place, lastOpen, onShow, change, label, call, fields, children }: StepFormProps) {
  const { t } = useTranslation()
  const isLast = place === names.length - 1
  const { error } = change
  const shown = useRef<unknown>(undefined)
  useEffect(() => {
    if (shown.current === error) return
    shown.current = error
    const refused = findRefused(error, fields)
    if (refused >= 0) onShow(refused)
  })
  return (
    <CheckedForm
      change={change}
      onSubmit={() => (isLast ? change.mutate(undefined) : onShow(place + 1))}
      maxWidth={820}
      below={
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
      }
    >
      <StepBar names={names} place={place} lastOpen={lastOpen} onShow={onShow} />
      {children}
    </CheckedForm>
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
