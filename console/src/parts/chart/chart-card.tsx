import { Button, Card, Group, Skeleton, Stack } from '@mantine/core'
import { type ReactNode, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { CardHeading, EmptyCard } from '../card.tsx'
import { Scroll } from '../scroll/scroll.tsx'

/** About the height of a card with a chart, px, so that its place is kept while it loads. */
export const CHART_CARD_HEIGHT = 345

/** A chart with its title and a sentence that says what it shows; its numbers can be read as a table. */
export function ChartCard({
  title,
  summary,
  columns,
  rows,
  isEmpty,
  empty,
  children,
}: {
  title: string
  summary: string
  columns: readonly string[]
  /** The cells of each row; the first one names it. */
  rows: readonly (readonly string[])[]
  /** Whether there is nothing to draw. */
  isEmpty: boolean
  /** Text in place of an empty chart. Default: that there were no attempts. */
  empty?: string
  children: ReactNode
}) {
  const { t } = useTranslation()
  const [isTable, setIsTable] = useState(false)
  return (
    <Card withBorder>
      <Stack gap="sm" h="100%">
        <Group justify="space-between" align="flex-start" wrap="nowrap">
          <CardHeading title={title} summary={summary} />
          <Button variant="default" size="compact-xs" style={{ flexShrink: 0 }} onClick={() => setIsTable(!isTable)}>
            {isTable ? t('chart.as-chart') : t('chart.as-table')}
          </Button>
        </Group>
        {isTable ? (
          <NumberTable title={title} columns={columns} rows={rows} />
        ) : isEmpty ? (
          <EmptyCard text={empty ?? t('chart.empty')} />
        ) : (
          <Suspense fallback={<Skeleton height={200} />}>{children}</Suspense>
        )}
      </Stack>
    </Card>
  )
}

function NumberTable({
  title,
  columns,
  rows,
}: {
  title: string
  columns: readonly string[]
  rows: readonly (readonly string[])[]
}) {
  return (
    <Scroll className="chart-table" label={title}>
      <table className="table dense">
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th key={column} scope="col" className={index === 0 ? undefined : 'end'}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells) => (
            <tr key={cells[0]}>
              {cells.map((cell, index) => (
                <td key={columns[index]} className={index === 0 ? 'nowrap' : 'nowrap end'}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
