import type { ReactNode } from 'react'

/** Facts about one thing, a name and a value in each line. Lines without a value are left out. */
export function Facts({ lines }: { lines: readonly (readonly [string, ReactNode] | undefined)[] }) {
  return (
    <table className="table facts">
      <tbody>
        {lines.map(
          (line) =>
            line && (
              <tr key={line[0]}>
                <th scope="row">{line[0]}</th>
                <td className="wrap">{line[1]}</td>
              </tr>
            ),
        )}
      </tbody>
    </table>
  )
}
