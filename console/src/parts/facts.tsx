import { Table } from '@mantine/core'
import type { ReactNode } from 'react'

/** Facts about one thing, a name and a value in each line. Lines without a value are left out. */
export function Facts({ lines }: { lines: readonly (readonly [string, ReactNode] | undefined)[] }) {
  return (
    <Table variant="vertical" withRowBorders={false} verticalSpacing={4} highlightOnHover={false}>
      <Table.Tbody>
        {lines.map(
          (line) =>
            line && (
              <Table.Tr key={line[0]}>
                <Table.Th w={150} fw={500} c="dimmed" scope="row">
                  {line[0]}
                </Table.Th>
                <Table.Td className="wrap">{line[1]}</Table.Td>
              </Table.Tr>
            ),
        )}
      </Table.Tbody>
    </Table>
  )
}
