import { Button, Group, NativeSelect, Stack } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useRouterState } from '@tanstack/react-router'
import { type ReactNode, type Ref, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useUnsaved } from '../frame/unsaved.ts'
import { FieldErrors } from './field-errors.tsx'
import { SubmissionError } from './problem.tsx'

interface FormProps {
  /** Accessible name, for a form that is a landmark of its screen. */
  label?: string
  onSubmit: () => void
  /** Something in the form is typed or chosen. */
  onTouch?: () => void
  ref?: Ref<HTMLFormElement>
  children: ReactNode
}

/** A form that the page handles itself: the browser submits nothing. */
export function Form({ label, onSubmit, onTouch, ref, children }: FormProps) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a key that chooses an option clicks it
    <form
      ref={ref}
      aria-label={label}
      onInput={onTouch}
      onClick={({ target }) => target instanceof Element && target.closest('[role="option"]') && onTouch?.()}
      onSubmit={(event) => {
        event.preventDefault()
        onSubmit()
      }}
    >
      {children}
    </form>
  )
}

/** A change as a form shows it; `useChange` returns one. */
export interface FormChange {
  isPending: boolean
  isError: boolean
  isSuccess: boolean
  error: unknown
  /** Instant of the last submission, ms; 0 before the first. */
  submittedAt: number
  mutate: (input: undefined) => void
}

interface ChangeFormProps {
  change: FormChange
  /** Label of the button that submits. */
  label: string
  /** Whether the button is disabled, because nothing differs or something is missing. */
  isDisabled?: boolean
  /** Whether the button is left out, because the user may only read the fields. */
  isReadOnly?: boolean
  /** Side of the button: `end` in a dialog, `start` in a page. */
  buttonAt?: 'start' | 'end'
  /** Width of the fields at most, px. */
  maxWidth?: number
  /** Buttons beside the one that submits. */
  actions?: ReactNode
  children: ReactNode
}

/** A form that shows the errors of its last submission at the inputs that they name, and the others below `children`. */
export function CheckedForm({
  change,
  onSubmit,
  below,
  maxWidth,
  isUnsaved,
  children,
}: {
  change: Omit<FormChange, 'mutate'>
  onSubmit: () => void
  /** Content below the errors: the buttons. */
  below: ReactNode
  maxWidth?: number | undefined
  /** Whether there are entries that are not saved. Default: something was typed or chosen since the last success. */
  isUnsaved?: boolean
  children: ReactNode
}) {
  const form = useRef<HTMLFormElement>(null)
  const { isPending, isSuccess, submittedAt } = change
  /** The last submission before something was typed or chosen. */
  const [touchedAfter, setTouchedAfter] = useState<number>()
  const isTouched = touchedAfter !== undefined && !(isSuccess && touchedAfter !== submittedAt)
  useUnsaved(!isPending && (isUnsaved ?? isTouched))
  return (
    <Form ref={form} onSubmit={onSubmit} onTouch={() => setTouchedAfter(submittedAt)}>
      <FieldErrors error={change.error} root={() => form.current}>
        {({ unshown, isShown }) => (
          <Stack {...(maxWidth !== undefined && { maw: maxWidth })}>
            {children}
            {change.isError && <SubmissionError error={change.error} unshown={unshown} isShown={isShown} />}
            {below}
          </Stack>
        )}
      </FieldErrors>
    </Form>
  )
}

/** A form that makes one change: its fields, the errors of the last submission, and the button with its progress. */
export function ChangeForm({
  change,
  label,
  isDisabled = false,
  isReadOnly = false,
  buttonAt = 'end',
  maxWidth,
  actions,
  children,
}: ChangeFormProps) {
  return (
    <CheckedForm
      change={change}
      onSubmit={() => change.mutate(undefined)}
      maxWidth={maxWidth}
      below={
        !isReadOnly && (
          <Group justify={`flex-${buttonAt}`}>
            <Button type="submit" loading={change.isPending} disabled={isDisabled}>
              {label}
            </Button>
            {actions}
          </Group>
        )
      }
    >
      {children}
    </CheckedForm>
  )
}

interface FilterFormProps {
  onApply: () => void
  /** Clears the filters. Default: the form offers no button for it. */
  onClear?: (() => void) | undefined
  children: ReactNode
}

/** The members of a search that are no filters: they choose what is shown of a screen. */
const NO_FILTERS = new Set(['tab', 'range', 'step'])

/** Fields of filters in a row. A phone shows them behind a button that says how many are set. */
export function FilterFields({ children }: { children: ReactNode }) {
  const { t } = useTranslation()
  const [isOpen, { toggle }] = useDisclosure(false)
  const search = useRouterState({ select: ({ location }) => location.search })
  const count = Object.keys(search).filter((name) => !NO_FILTERS.has(name)).length
  return (
    <Group align="flex-end" gap="sm" className="filters" data-open={isOpen}>
      <Button className="filters-toggle" variant="default" onClick={toggle} aria-expanded={isOpen}>
        {count === 0 ? t('filters.title') : t('filters.set', { count })}
      </Button>
      {children}
    </Group>
  )
}

/** The filters of a list in a row, with the button that applies what is typed. */
export function FilterForm({ onApply, onClear, children }: FilterFormProps) {
  const { t } = useTranslation()
  return (
    <Form label={t('filters.title')} onSubmit={onApply}>
      <FilterFields>
        {children}
        <Button type="submit" variant="default">
          {t('filters.apply')}
        </Button>
        {onClear && (
          <Button variant="subtle" onClick={onClear}>
            {t('list.clear')}
          </Button>
        )}
      </FilterFields>
    </Form>
  )
}

interface FilterChoiceProps {
  label: string
  /** Chosen value; undefined or empty for all. */
  value: string | undefined
  /** Takes the chosen value; an empty one for all. */
  onChange: (value: string) => void
  options: readonly { value: string; label: string }[]
}

/** A filter that one value of a list sets, or none. */
export function FilterChoice({ label, value = '', onChange, options }: FilterChoiceProps) {
  const { t } = useTranslation()
  return (
    <NativeSelect
      label={label}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
      data={[{ value: '', label: t('filters.all') }, ...options]}
    />
  )
}
