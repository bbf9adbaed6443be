import { Checkbox, Table, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { Status } from '../../parts/status.tsx'
import { TextLink } from '../../parts/text-link.tsx'
import { useNow } from '../../parts/time.tsx'
import { LastAnswer } from './delivery-table.tsx'
import { groupByDay, type LedgerLine } from './ledger.ts'

type Delivery = Schemas['Dispatch']

/** Height of every line, so that what is not drawn has its place. */
const LINE_PX = 41

/** Lines from the end at which the next page is read. */
const AHEAD = 30

interface LedgerTableProps {
  rows: readonly Delivery[]
  names: ReadonlyMap<string, string>
  chosen: ReadonlySet<string>
  onChoose: (id: string, isChosen: boolean) => void
  /** Reads the next page; undefined at the end, and while one is read. */
  onEnd: (() => void) | undefined
  isBusy: boolean
}

/** The ledger as a table that draws the lines in sight alone. */
export function LedgerTable({ rows, names, chosen, onChoose, onEnd, isBusy }: LedgerTableProps) {
  const { t, i18n } = useTranslation()
  const top = useRef<HTMLTableSectionElement>(null)
  const lines = useMemo(() => {
    const day = new Intl.DateTimeFormat(i18n.language, { dateStyle: 'full' })
    return groupByDay(rows, (at) => day.format(new Date(at)))
  }, [rows, i18n.language])
  const virtual = useWindowVirtualizer({
    count: lines.length,
    estimateSize: () => LINE_PX,
    overscan: 15,
    scrollMargin: top.current?.getBoundingClientRect().top ?? 0,
  })
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (lines.length > 0 && last >= lines.length - AHEAD) onEnd?.()
  }, [last, lines.length, onEnd])
  const before = (items[0]?.index ?? 0) * LINE_PX
  const after = Math.max(0, lines.length - last - 1) * LINE_PX
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard
    <section className="scroll" tabIndex={0} aria-label={t('deliveries.title')}>
      <Table className="ledger" aria-busy={isBusy} verticalSpacing={0} aria-rowcount={-1}>
        <Table.Caption className="visually-hidden">{t('deliveries.title')}</Table.Caption>
        <Head />
        <Table.Tbody ref={top}>
          {before > 0 && <Gap height={before} />}
          {items.map(({ index }) => {
            const line = lines[index] as LedgerLine
            if (line.day !== undefined)
              return (
                <Table.Tr key={line.day} className="day" h={LINE_PX} aria-rowindex={index + 2}>
                  <Table.Th colSpan={COLUMNS} scope="rowgroup">
                    {line.day}
                  </Table.Th>
                </Table.Tr>
              )
            return (
              <Line
                key={line.row.document_id}
                index={index}
                row={line.row}
                name={names.get(line.row.webhook)}
                isChosen={chosen.has(line.row.document_id)}
                onChoose={onChoose}
              />
            )
          })}
          {after > 0 && <Gap height={after} />}
        </Table.Tbody>
      </Table>
    </section>
  )
}

/** The columns, with that of the selection. */
const COLUMNS = 9

function Head() {
  const { t } = useTranslation()
  const columns = [
    t('ledger.time'),
    t('deliveries.status'),
    t('deliveries.event'),
    t('deliveries.webhook'),
    t('deliveries.attempts'),
    t('deliveries.answer'),
    t('deliveries.duration'),
    t('deliveries.next'),
  ]
  return (
    <Table.Thead>
      <Table.Tr>
        <Table.Th w={36}>
          <span className="visually-hidden">{t('ledger.choose-column')}</span>
        </Table.Th>
        {columns.map((label, index) => (
          <Table.Th key={label} scope="col" ta={index === 4 || index === 6 ? 'end' : 'start'} className="nowrap">
            {label}
          </Table.Th>
        ))}
      </Table.Tr>
    </Table.Thead>
  )
}

function Gap({ height }: { height: number }) {
  return (
    <tr>
      <td style={{ height, padding: 0, border: 0 }} />
    </tr>
  )
}

interface LineProps {
  index: number
  row: Delivery
  name: string | undefined
  isChosen: boolean
  onChoose: (id: string, isChosen: boolean) => void
}

function Line({ index, row, name, isChosen, onChoose }: LineProps) {
  const { t, i18n } = useTranslation()
  const clock = new Intl.DateTimeFormat(i18n.language, { timeStyle: 'medium' })
  return (
    <Table.Tr h={LINE_PX} aria-rowindex={index + 2}>
      <Table.Td>
        <Checkbox
          size="xs"
          aria-label={t('ledger.choose', { event: row.event, time: clock.format(new Date(row.created_at)) })}
          checked={isChosen}
          onChange={({ currentTarget }) => onChoose(row.document_id, currentTarget.checked)}
        />
      </Table.Td>
      <Table.Td className="nowrap">
        <time dateTime={row.created_at} title={row.created_at}>
          {clock.format(new Date(row.created_at))}
        </time>
      </Table.Td>
      <Table.Td>
        <Status name={row.status} />
      </Table.Td>
      <Table.Td>
        <TextLink to="/deliveries/$id" params={{ id: row.document_id }} search size="sm" className="nowrap">
          {row.event}
          {row.is_test ? ` (${t('deliveries.test')})` : ''}
        </TextLink>
      </Table.Td>
      <Table.Td maw={220}>
        <TextLink to="/webhooks/$id" params={{ id: row.webhook }} size="sm" truncate display="block">
          {name ?? row.webhook.slice(0, 8)}
        </TextLink>
      </Table.Td>
      <Table.Td ta="end" className="nowrap">
        {row.attempts <= 5
          ? t('ledger.of-five', { attempts: row.attempts })
          : t('ledger.more', { more: row.attempts - 5 })}
      </Table.Td>
      <Table.Td>
        <LastAnswer row={row} />
      </Table.Td>
      <Table.Td ta="end" className="nowrap">
        {row.last_duration_ms === null ? '–' : t('deliveries.ms', { ms: row.last_duration_ms })}
      </Table.Td>
      <Table.Td className="nowrap">
        {row.next_attempt_at === null ? '–' : <Countdown at={row.next_attempt_at} />}
      </Table.Td>
    </Table.Tr>
  )
}

/** The time until an instant, to the second. */
function Countdown({ at }: { at: string }) {
  const { t } = useTranslation()
  const nowMs = useNow()
  const seconds = Math.max(0, Math.round((Date.parse(at) - nowMs) / 1_000))
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  const two = (value: number) => String(value).padStart(2, '0')
  const text = hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
  return (
    <Text component="span" size="sm" title={at} style={{ fontVariantNumeric: 'tabular-nums' }}>
      {seconds === 0 ? t('ledger.due') : text}
    </Text>
  )
}
