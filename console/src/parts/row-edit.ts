import { entityTagOf, isProblem } from '@signalbox/client'
import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useChange } from '../frame/use-change.ts'
import { listDifferences } from './differences.ts'

/** An answer of the API with the tag of the row in it. */
export type Tagged<Answer> = Answer & { etag: string | undefined }

/** Keeps the tag of a row with the answer, for the condition of its change. */
export async function withTag<Answer extends object>(read: Promise<Answer>): Promise<Tagged<Answer>> {
  const answer = await read
  return { ...answer, etag: entityTagOf(answer) }
}

/** How often a change is sent again after somebody else changed what the form does not show. */
const MOST_TRIES = 3

interface RowEditProps<Row, Fields> {
  /** The row as it is now. */
  row: Row
  /** The query that reads it, with its tag (`withTag`). */
  queryKey: QueryKey
  /** The row as the fields of the form have it. Pure. */
  fieldsOf: (row: Row) => Fields
  /** Changes these fields alone, on the condition of the tag: what somebody else changed beside them stays. */
  send: (changed: Partial<Fields>, ifMatch: string | undefined) => Promise<{ data: Row }>
  /** Other queries that the change touches. */
  touches: readonly QueryKey[]
  onDone?: () => unknown
}

/**
 * The edit of a row that others edit too. `mine` are the fields that the form changes, `theirs` those that somebody else
 * changed since it began; where both have some, `isConflict` says so, and the entries stay until the user decides.
 */
export function useRowEdit<Row, Fields extends object>(props: RowEditProps<Row, Fields>) {
  const { row, queryKey, fieldsOf, send, touches, onDone } = props
  const queries = useQueryClient()
  const current = fieldsOf(row)
  const [base, setBase] = useState(current)
  const [draft, setDraft] = useState(current)
  const mine = listDifferences(base, draft)
  const theirs = listDifferences(base, current)
  const begin = (fields: Fields) => {
    setBase(fields)
    setDraft(fields)
  }
  if (theirs.length > 0 && mine.length === 0) begin(current)
  const save = useChange({
    make: async ({ from, changed }: { from: Fields; changed: Partial<Fields> }) => {
      for (let tries = 1; ; tries += 1) {
        const now = queries.getQueryData<Tagged<{ data: Row }>>(queryKey)
        if (now && listDifferences(from, fieldsOf(now.data)).length > 0) return undefined
        try {
          return { made: await send(changed, now?.etag), sent: { ...from, ...changed } }
        } catch (error) {
          if (!isProblem(error, 'precondition_failed') || tries === MOST_TRIES) throw error
          await queries.refetchQueries({ queryKey, exact: true })
        }
      }
    },
    touches: [queryKey, ...touches],
    onDone: async (answer) => {
      if (!answer) return
      const { made, sent } = answer
      // A read from before the change would look like a change of somebody else.
      await queries.cancelQueries({ queryKey, exact: true })
      queries.setQueryData(queryKey, { ...made, etag: entityTagOf(made) })
      const saved = fieldsOf(made.data)
      setBase(saved)
      // Entries typed while the change was on its way stay.
      setDraft((typed) => ({ ...saved, ...pick(listDifferences(sent, typed), typed) }))
      return onDone?.()
    },
  })
  return {
    draft,
    change: (part: Partial<Fields>) => setDraft((before) => ({ ...before, ...part })),
    mine,
    theirs,
    base,
    current,
    isConflict: theirs.length > 0 && mine.length > 0,
    save,
    submit: () => save.mutate({ from: base, changed: pick(mine, draft) }),
    /** Drops the edit. */
    reload: () => begin(current),
    /** Makes the edit over what stands now; a field that the form did not change is what it is now. */
    overwrite: () => {
      setBase(current)
      setDraft({ ...current, ...pick(mine, draft) })
      save.mutate({ from: current, changed: pick(mine, draft) })
    },
  }
}

/** These fields alone. Pure. */
const pick = <Fields extends object>(names: readonly (keyof Fields & string)[], fields: Fields) =>
  Object.fromEntries(names.map((name) => [name, fields[name]])) as unknown as Partial<Fields>

/** Result of `useRowEdit`. */
export type RowEdit<Fields extends object> = Pick<
  ReturnType<typeof useRowEdit<unknown, Fields>>,
  'mine' | 'theirs' | 'base' | 'current' | 'isConflict' | 'save' | 'submit' | 'reload' | 'overwrite'
>
