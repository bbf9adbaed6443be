import { Button, Group, Stack, Table, Text, Title, Tooltip } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'

type Hour = Schemas['HourlyDeliveries']

/** The deliveries of each hour as bars, or as a table: what succeeded, and above it what did not. */
export function HourBars({ series }: { series: readonly Hour[] }) {
  const { t, i18n } = useTranslation()
  const [isTable, setIsTable] = useState(false)
  const success = series.reduce((sum, hour) => sum + hour.success, 0)
  const failed = series.reduce((sum, hour) => sum + hour.failed, 0)
  const summary = t('bars.summary', { success, failed })
  const clock = new Intl.DateTimeFormat(i18n.language, { hour: '2-digit', minute: '2-digit' })
  const nameOf = ({ hour }: Hour) => clock.format(new Date(hour))
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <div>
          <Title order={2} size="h4">
            {t('bars.title')}
          </Title>
          <Text size="sm" c="dimmed">
            {summary}
          </Text>
        </div>
        <Button variant="default" size="compact-sm" onClick={() => setIsTable(!isTable)}>
          {isTable ? t('bars.as-chart') : t('bars.as-table')}
        </Button>
      </Group>
      {isTable ? (
        <HourTable series={series} nameOf={nameOf} />
      ) : (
        <Bars series={series} nameOf={nameOf} summary={summary} />
      )}
    </Stack>
  )
}

interface HoursProps {
  series: readonly Hour[]
  nameOf: (hour: Hour) => string
}

function Bars({ series, nameOf, summary }: HoursProps & { summary: string }) {
  const { t } = useTranslation()
  const highest = Math.max(1, ...series.map(({ success, failed }) => success + failed))
  const heightOf = (count: number) => `${(count / highest) * 100}%`
  return (
    <>
      <div className="bars" role="img" aria-label={summary}>
        {series.map((one) => (
          <Tooltip key={one.hour} label={t('bars.hour', { ...one, hour: nameOf(one) })}>
            <div>
              <div className="bad" style={{ height: heightOf(one.failed) }} />
              <div className="good" style={{ height: heightOf(one.success) }} />
            </div>
          </Tooltip>
        ))}
      </div>
      <Group justify="space-between">
        {[series[0], series.at(-1)].map(
          (one) =>
            one && (
              <Text key={one.hour} size="xs" c="dimmed">
                {nameOf(one)}
              </Text>
            ),
        )}
      </Group>
    </>
  )
}

function HourTable({ series, nameOf }: HoursProps) {
  const { t } = useTranslation()
  return (
    <div className="scroll">
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">{t('bars.col-hour')}</Table.Th>
            <Table.Th scope="col">{t('status.success')}</Table.Th>
            <Table.Th scope="col">{t('bars.failed')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {series.map((one) => (
            <Table.Tr key={one.hour}>
              <Table.Td>{nameOf(one)}</Table.Td>
              <Table.Td>{one.success}</Table.Td>
              <Table.Td>{one.failed}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}
