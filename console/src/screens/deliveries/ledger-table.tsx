import type { Schemas } from '@signalbox/client'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, memo, type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { usePreferences } from '../../frame/preferences.ts'
import { useFollowedLinks } from '../../frame/use-followed-links.ts'
import { openRow } from '../../parts/row-opening.ts'
import type { Column } from '../../parts/row-table.tsx'
import { Scroll } from '../../parts/scroll/scroll.tsx'
import { useDateFormat } from '../../parts/time.tsx'
import { BESIDE } from './beside.ts'
import { groupByDay, type LedgerLine } from './ledger.ts'

type Delivery = Schemas['Dispatch']

/** Height of every line by density, so that what is not drawn has its place. */
const LINE_PX = { comfortable: 41, compact: 33 } as const

/** Lines that are drawn above and below those in sight. */
const OVERSCAN = 15

/** Lines from the end at which the next page is read. */
const AHEAD = 60

/** A delivery of the ledger opens beside it. */
const stateOf = (link: HTMLAnchorElement) => (link.dataset.beside === undefined ? undefined : BESIDE)

interface LedgerTableProps {
  rows: readonly Delivery[]
  columns: readonly Column<Delivery>[]
  chosen: ReadonlySet<string>
  /** Undefined for a user who may do nothing with what is chosen. */
  onChoose: ((id: string, isChosen: boolean) => void) | undefined
  /** Reads the next page; undefined at the end, and while one is read. */
  onEnd: (() => void) | undefined
  isBusy: boolean
}

/** The ledger as a table that draws the lines in sight alone. */
export function LedgerTable({ rows, columns, chosen, onChoose, onEnd, isBusy }: LedgerTableProps) {
  const { t } = useTranslation()
  const follow = useFollowedLinks(stateOf)
  const linePx = LINE_PX[usePreferences().density]
  const top = useRef<HTMLTableSectionElement>(null)
  const dayOf = useDateFormat({ dateStyle: 'full' })
  const lines = useMemo(() => groupByDay(rows, dayOf), [rows, dayOf])
  const virtual = useWindowVirtualizer({
    count: lines.length,
    estimateSize: () => linePx,
    overscan: OVERSCAN,
    scrollMargin: useTopPx(top),
    // The lines around those in sight are drawn already, so no scroll event has to wait for a drawing.
    useFlushSync: false,
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
    <Scroll label={t('deliveries.title')}>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the links in it have the focus, and their keys click */}
      <table
        className="table ledger opens"
        style={{ '--line-height': `${linePx}px` } as CSSProperties}
        aria-busy={isBusy}
        aria-rowcount={-1}
        onClick={(event) => {
          follow(event)
          openRow(event)
        }}
      >
        <caption className="visually-hidden">{t('deliveries.title')}</caption>
        <Head columns={columns} isChoosable={onChoose !== undefined} />
        <tbody ref={top}>
          {before > 0 && <Gap height={before} />}
          {items.map(({ index }) => {
            const line = lines[index] as LedgerLine
            if (line.day !== undefined)
              return (
                <tr key={line.day} className="day" aria-rowindex={index + 2}>
                  <th colSpan={columns.length + (onChoose ? 1 : 0)} scope="rowgroup">
                    {line.day}
                  </th>
                </tr>
              )
            const { row } = line
            const isChosen = chosen.has(row.document_id)
            return <Line key={row.document_id} {...{ index, row, columns, isChosen, onChoose }} />
          })}
          {after > 0 && <Gap height={after} />}
        </tbody>
      </table>
    </Scroll>
  )
}

/**
 * Where an element begins in the document, in pixels. It is measured when the page around it gets another height, and not
 * while it is scrolled: that would lay the page out for each event.
 */
function useTopPx(element: RefObject<HTMLElement | null>): number {
  const [topPx, setTopPx] = useState(0)
  useLayoutEffect(() => {
    const measure = () => setTopPx(Math.round((element.current?.getBoundingClientRect().top ?? 0) + window.scrollY))
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(document.body)
    return () => observer.disconnect()
  }, [element])
  return topPx
}

const classOf = ({ isNumber }: Column<Delivery>) => (isNumber ? 'nowrap end' : 'nowrap')

function Head({ columns, isChoosable }: { columns: readonly Column<Delivery>[]; isChoosable: boolean }) {
  const { t } = useTranslation()
  return (
    <thead>
      <tr>
        {isChoosable && (
          <th style={{ width: 36 }}>
            <span className="visually-hidden">{t('ledger.choose-column')}</span>
          </th>
        )}
        {columns.map((column) => (
          <th key={column.label} scope="col" className={classOf(column)}>
            {column.label}
          </th>
        ))}
      </tr>
    </thead>
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

/** A line is drawn once, when it comes near; it stays as it is while the list is scrolled past it. */
const Line = memo(function Line({ index, row, columns, isChosen, onChoose }: LineProps) {
  const { t } = useTranslation()
  const clock = useDateFormat({ timeStyle: 'medium' })
  return (
    <tr aria-rowindex={index + 2}>
      {onChoose && (
        <td>
          <input
            type="checkbox"
            className="check"
            aria-label={t('ledger.choose', { event: row.event, time: clock(row.created_at) })}
            checked={isChosen}
            onChange={({ currentTarget }) => onChoose(row.document_id, currentTarget.checked)}
          />
        </td>
      )}
      {columns.map((column) => (
        <td key={column.label} className={classOf(column)} data-opens={column.opens}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  )
})
