import { Button } from '@mantine/core'
import { useTranslation } from 'react-i18next'

/** Steps of a wizard by their names. Those behind `lastOpen` wait for what an earlier one asks. */
export function StepBar({
  names,
  place,
  lastOpen,
  onShow,
}: {
  names: readonly string[]
  place: number
  lastOpen: number
  onShow: (index: number) => void
}) {
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
