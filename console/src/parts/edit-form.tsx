import { Button, Group, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { Conflict } from './conflict.tsx'
import { Facts } from './facts.tsx'
import { CheckedForm } from './form.tsx'
import type { RowEdit } from './row-edit.ts'

interface EditFormProps<Fields extends object> {
  edit: RowEdit<Fields>
  /** Label of each field where two edits meet. */
  labels: Readonly<Record<keyof Fields & string, string>>
  /** How the value of a field is shown there. Default: as text. */
  show?: { readonly [Name in keyof Fields & string]?: (value: Fields[Name]) => string }
  /** Whether something in the fields is wrong. */
  isWrong?: boolean
  /** Whether the button is left out, because the user may only read the fields. */
  isReadOnly?: boolean
  /** Side of the button: `end` in a dialog, `start` in a page. */
  buttonAt?: 'start' | 'end'
  /** Width of the fields at most, px. */
  maxWidth?: number
  children: ReactNode
}

/** The form of a row that others edit too: it shows what somebody else changed meanwhile, and keeps what was entered. */
export function EditForm<Fields extends object>(props: EditFormProps<Fields>) {
  const { edit, labels, show, isWrong = false, isReadOnly = false, buttonAt = 'start', maxWidth, children } = props
  const { t } = useTranslation('console')
  const { save, mine, theirs, base, current, isConflict } = edit
  const showValue = (name: keyof Fields & string, fields: Fields) => {
    const value = fields[name]
    const own = show?.[name]
    if (own) return own(value) || '–'
    if (typeof value === 'boolean') return value ? t('form.yes') : t('form.no')
    return (Array.isArray(value) ? value.join(', ') : String(value ?? '')) || '–'
  }
  return (
    <CheckedForm
      change={save}
      onSubmit={edit.submit}
      isUnsaved={mine.length > 0}
      maxWidth={maxWidth}
      below={
        !isReadOnly && (
          <Group justify={`flex-${buttonAt}`}>
            <Button type="submit" loading={save.isPending} disabled={mine.length === 0 || isConflict || isWrong}>
              {t('settings.save')}
            </Button>
          </Group>
        )
      }
    >
      {isConflict && (
        <Conflict isRunning={save.isPending} onReload={edit.reload} onOverwrite={edit.overwrite}>
          <Facts
            lines={theirs.map((name) => [
              labels[name],
              <Difference key={name} base={showValue(name, base)} now={showValue(name, current)} />,
            ])}
          />
        </Conflict>
      )}
      {children}
      {save.data !== undefined && mine.length === 0 && <Text role="status">{t('settings.saved')}</Text>}
    </CheckedForm>
  )
}

/** Value of a field, and the value that somebody else gave it. */
function Difference({ base, now }: { base: string; now: string }) {
  return (
    <>
      <del>{base}</del> → <ins>{now}</ins>
    </>
  )
}
