import { Checkbox, Table } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, useEffect, useMemo, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { usePreferences } from '../../frame/preferences.ts'
import type { Column } from '../../parts/list.tsx'
import { useDateFormat } from '../../parts/time.tsx'
import { groupByDay, type LedgerLine } from './ledger.ts'

type Delivery = Schemas['Dispatch']

/** Height of every line by density, so that what is not drawn has its place. */
const LINE_PX = { comfortable: 41, compact: 33 } as const

/** Lines from the end at which the next page is read. */
const AHEAD = 30

interface LedgerTableProps {
  rows: readonly Delivery[]
  columns: readonly Column<Delivery>[]
  chosen: ReadonlySet<string>
  onChoose: (id: string, isChosen: boolean) => void
  /** Reads the next page; undefined at the end, and while one is read. */
  onEnd: (() => void) | undefined
  isBusy: boolean
}

/** The ledger as a table that draws the lines in sight alone. */
export function LedgerTable({ rows, columns, chosen, onChoose, onEnd, isBusy }: LedgerTableProps) {
  const { t } = useTranslation()
  const linePx = LINE_PX[usePreferences().density]
  const top = useRef<HTMLTableSectionElement>(null)
  const dayOf = useDateFormat({ dateStyle: 'full' })
  const lines = useMemo(() => groupByDay(rows, dayOf), [rows, dayOf])
  const virtual = useWindowVirtualizer({
    count: lines.length,
    estimateSize: () => linePx,
    overscan: 15,
    scrollMargin: top.current?.getBoundingClientRect().top ?? 0,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: another density gives every line another height
  useEffect(() => virtual.measure(), [linePx])
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (lines.length > 0 && last >= lines.length - AHEAD) onEnd?.()
  }, [last, lines.length, onEnd])
  const before = (items[0]?.index ?? 0) * linePx
  const after = Math.max(0, lines.length - last - 1) * linePx
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard
    <section className="scroll" tabIndex={0} aria-label={t('deliveries.title')}>
      <Table
        className="ledger"
        style={{ '--line-height': `${linePx}px` } as CSSProperties}
        aria-busy={isBusy}
        verticalSpacing={0}
        aria-rowcount={-1}
      >
        <Table.Caption className="visually-hidden">{t('deliveries.title')}</Table.Caption>
        <Head columns={columns} />
        <Table.Tbody ref={top}>
          {before > 0 && <Gap height={before} />}
          {items.map(({ index }) => {
            const line = lines[index] as LedgerLine
            if (line.day !== undefined)
              return (
                <Table.Tr key={line.day} className="day" h={linePx} aria-rowindex={index + 2}>
                  <Table.Th colSpan={columns.length + 1} scope="rowgroup">
                    {line.day}
                  </Table.Th>
                </Table.Tr>
              )
            return (
              <Line
                key={line.row.document_id}
                index={index}
                row={line.row}
                columns={columns}
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

const alignOf = ({ isNumber }: Column<Delivery>) => (isNumber ? 'end' : 'start')

function Head({ columns }: { columns: readonly Column<Delivery>[] }) {
  const { t } = useTranslation()
  return (
    <Table.Thead>
      <Table.Tr>
        <Table.Th w={36}>
          <span className="visually-hidden">{t('ledger.choose-column')}</span>
        </Table.Th>
        {columns.map((column) => (
          <Table.Th key={column.label} scope="col" ta={alignOf(column)} className="nowrap">
            {column.label}
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

interface LineProps extends Pick<LedgerTableProps, 'columns' | 'onChoose'> {
  index: number
  row: Delivery
  isChosen: boolean
}

function Line({ index, row, columns, isChosen, onChoose }: LineProps) {
  const { t } = useTranslation()
  const clock = useDateFormat({ timeStyle: 'medium' })
  return (
    <Table.Tr aria-rowindex={index + 2}>
      <Table.Td>
        <Checkbox
          size="xs"
          aria-label={t('ledger.choose', { event: row.event, time: clock(row.created_at) })}
          checked={isChosen}
          onChange={({ currentTarget }) => onChoose(row.document_id, currentTarget.checked)}
        />
      </Table.Td>
      {columns.map((column) => (
        <Table.Td key={column.label} ta={alignOf(column)} className="nowrap">
          {column.cell(row)}
        </Table.Td>
      ))}
    </Table.Tr>
  )
}
