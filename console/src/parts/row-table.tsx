import type { ReactNode } from 'react'
import { openRow } from './row-opening.ts'
import { Scroll } from './scroll/scroll.tsx'

/** One column of a list. */
export interface Column<Row> {
  label: string
  /** Its name among the columns of a list from which this browser may leave it out. Default: it is always shown. */
  id?: string
  cell: (row: Row) => ReactNode
  isNumber?: boolean
  /** Whether the first link or button of its cells opens the row, so that a click anywhere on the row does. */
  opens?: boolean
}

/** A row of a list. */
export interface Row {
  document_id: string
}

interface RowTableProps<One extends Row> {
  caption: string
  columns: readonly Column<One>[]
  rows: readonly One[]
  isBusy?: boolean
  /** Whether the rows are those of the filters before. */
  isOld?: boolean
}

/** Rows as a table, which scrolls sideways where it has no room. */
export function RowTable<One extends Row>({
  caption,
  columns,
  rows,
  isBusy = false,
  isOld = false,
}: RowTableProps<One>) {
  return (
    <Scroll label={caption}>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the link of each row has the focus */}
      <table
        className={columns.some(({ opens }) => opens) ? 'table named opens' : 'table named'}
        aria-busy={isBusy}
        data-old={isOld}
        onClick={openRow}
      >
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ label, isNumber }) => (
              <th key={label} scope="col" className={isNumber ? 'end' : undefined}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.document_id}>
              {columns.map(({ label, cell, isNumber, opens }) => (
                <td key={label} className={isNumber ? 'end' : undefined} data-opens={opens}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
