import { isProblem } from '@signalbox/client'
import {
  createContext,
  Fragment,
  type ReactNode,
  useContext,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react'
import { FieldMessage } from './refusal/field-message.tsx'
import type { FieldError } from './refusal/field-text.ts'
import { useRefusalTexts } from './refusal/refusal-texts.ts'

/** The errors of a problem that name a member of the body; none for another error. Pure. */
export function readFieldErrors(error: unknown): readonly FieldError[] {
  return isProblem(error, 'validation_failed') ? (error.problem.errors ?? []) : []
}

/** The errors about a member, or about what is inside it. Pure. */
export function findErrorsOf(errors: readonly FieldError[], field: string): readonly FieldError[] {
  return errors.filter(({ path }) => path === field || path.startsWith(`${field}.`))
}

interface Shared {
  errors: readonly FieldError[]
  /** Says that an input shows the errors of a member; the result ends it. */
  claim: (field: string) => () => void
  /** Drops the errors of a member, because its input was edited. */
  drop: (field: string) => void
}

const NONE: Shared = { errors: [], claim: () => () => {}, drop: () => {} }

const Errors = createContext<Shared>(NONE)

interface FieldErrorsProps {
  /** Error of the last submission. */
  error: unknown
  /** The form in which the first input with an error gets the focus. */
  root: () => HTMLElement | null
  /** `unshown`: errors that no input shows. `isShown`: whether an input shows one. */
  children: (found: { unshown: readonly FieldError[]; isShown: boolean }) => ReactNode
}

/** Hands the errors of a submission to the inputs that they name, and leads to the first of these. */
export function FieldErrors({ error, root, children }: FieldErrorsProps) {
  const [claimed, setClaimed] = useState<readonly string[]>([])
  const [edited, setEdited] = useState<{ of: unknown; fields: readonly string[] }>({ of: undefined, fields: [] })
  useRefusalTexts()
  const all = readFieldErrors(error)
  const dropped = edited.of === error ? edited.fields : []
  const left = all.filter((item) => !dropped.some((field) => findErrorsOf([item], field).length > 0))
  const isClaimed = (item: FieldError) => claimed.some((field) => findErrorsOf([item], field).length > 0)
  const unshown = left.filter((item) => !isClaimed(item))
  const pending = useRef<unknown>(undefined)
  const last = useRef<unknown>(undefined)
  if (last.current !== error) {
    last.current = error
    pending.current = all.length > 0 ? error : undefined
  }
  useEffect(() => {
    if (pending.current === undefined) return
    const input = findInvalid(root())
    if (!input) return
    pending.current = undefined
    input.focus()
  })
  const shared: Shared = {
    errors: left,
    claim: (field) => {
      setClaimed((before) => [...before, field])
      return () =>
        setClaimed((before) => before.filter((item, index) => item !== field || index !== before.indexOf(field)))
    },
    drop: (field) =>
      setEdited((before) => ({ of: error, fields: before.of === error ? [...before.fields, field] : [field] })),
  }
  return <Errors value={shared}>{children({ unshown, isShown: all.some(isClaimed) })}</Errors>
}

/** The first input of a form that shows an error: itself, or the first of its group. */
function findInvalid(root: HTMLElement | null): HTMLElement | null {
  const shown = root?.querySelector<HTMLElement>('[aria-invalid="true"], [data-field-error]')
  if (!shown) return null
  return shown.matches('input, textarea, select') ? shown : shown.querySelector('input, textarea, select, button')
}

/** The error of a member for its input, and what the input calls when it is edited. */
export function useFieldError(field: string | undefined): { error: ReactNode; onEdit: () => void } {
  const { errors, claim, drop } = useContext(Errors)
  const claims = useRef(claim)
  claims.current = claim
  useLayoutEffect(() => (field === undefined ? undefined : claims.current(field)), [field])
  if (field === undefined) return { error: undefined, onEdit: () => {} }
  const own = findErrorsOf(errors, field)
  const texts = own.map((item, index) => (
    <Fragment key={`${item.path} ${item.code} ${item.message}`}>
      {index > 0 && ' · '}
      {item.path !== field && `${item.path.slice(field.length + 1)}: `}
      <FieldMessage error={item} />
    </Fragment>
  ))
  return {
    error: own.length === 0 ? undefined : texts,
    onEdit: () => {
      if (own.length > 0) drop(field)
    },
  }
}
