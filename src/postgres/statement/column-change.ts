import { type Fragment, nameText } from './fragment.ts'
import { compileNames, valuesOf } from './named-text.ts'

/** Assignment of each member of a change, with `$member` for its value: `name = $name`. */
export type ChangedColumns<Change> = { readonly [Member in keyof Required<Change>]: string }

/**
 * A write of the columns of the row `document_id` of a table whose members the change contains. Omitted and undefined
 * members are unchanged; unknown ones are ignored. Each combination of members is one constant text, compiled once.
 * `returned` is the returning list, as SQL.
 */
export function columnChange<Change extends object>(
  table: string,
  columns: ChangedColumns<Change>,
  returned?: string,
): (id: string, change: Change) => Fragment {
  const members = Object.keys(columns) as (keyof Change & string)[]
  const returning = returned === undefined ? '' : ` returning ${returned}`
  const unique = nameText(`change of ${table}`)
  const compiledBy = new Map<string, ReturnType<typeof compileNames>>()
  return (id, change) => {
    const given = members.filter((member) => change[member] !== undefined)
    const name = `${unique}: ${given.join(', ')}`
    let compiled = compiledBy.get(name)
    if (!compiled) {
      const set = given.map((member) => columns[member]).join(', ')
      compiled = compileNames(`update ${table} set ${set} where document_id = $id${returning}`)
      compiledBy.set(name, compiled)
    }
    return { name, text: compiled.text, values: valuesOf(compiled, { ...change, id }) }
  }
}

/** A statement as a part of `with`, for the last statement of a transaction (`writeAtEnd`). */
export function asPart(name: string, { text, ...fragment }: Fragment): Fragment {
  return { ...fragment, text: `${name} as (${text})` }
}
