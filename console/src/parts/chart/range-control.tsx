import { SegmentedControl } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { RANGES, type Range } from './format.ts'

/** Chooses the range of charts. */
export function RangeControl({
  label,
  range,
  onChoose,
}: {
  label: string
  range: Range
  onChoose: (next: Range) => void
}) {
  const { t } = useTranslation()
  return (
    <SegmentedControl
      transitionDuration={0}
      size="xs"
      aria-label={label}
      value={range}
      onChange={(value) => onChoose(value as Range)}
      data={RANGES.map((range) => ({ value: range, label: t(`since.${range}`) }))}
    />
  )
}
