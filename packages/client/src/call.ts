import type { components, operations } from './api.generated.ts'
import type { OPERATIONS } from './operations.generated.ts'

/** The shapes of the API: rows, bodies, pages. */
export type Schemas = components['schemas']

/** An operation by its name in `openapi.json`. */
export type OperationId = keyof operations

/** How an operation is called over HTTP. */
export interface Operation {
  method: string
  path: string
  /** It takes an `Idempotency-Key`, so a request of it may be sent again. */
  isKeyed?: boolean
}

/** Options of any call, beside its input. */
export interface CallOptions {
  /** Ends the call, its retries included. */
  signal?: AbortSignal
  /** Of a change: the key under which it is made once. Default: a new one for each call. */
  idempotencyKey?: string
  /** Of the change of a row: the tag of the row as it was read (`entityTagOf`). Another row is a `precondition_failed`. */
  ifMatch?: string | undefined
}

/** A member that is left out when the operation has none, and optional when all of it is. */
type Member<Name extends string, Value> = [Value] extends [undefined]
  ? { [Key in Name]?: never }
  : undefined extends Value
    ? { [Key in Name]?: Exclude<Value, undefined> }
    : { [Key in Name]: Value }

type BodyOf<Declared> = Declared extends { requestBody: { content: infer Content } }
  ? Content[keyof Content]
  : Declared extends { requestBody?: { content: infer Content } }
    ? Content[keyof Content] | undefined
    : undefined

/** The input of an operation: members of its path, its query, its body. */
export type Input<Id extends OperationId> = CallOptions &
  Member<'path', operations[Id]['parameters']['path']> &
  Member<'query', operations[Id]['parameters']['query']> &
  Member<'body', BodyOf<operations[Id]>>

type SuccessStatus = 200 | 201 | 202 | 204

type ContentOf<Response> = Response extends { content: infer Content }
  ? Content extends { 'application/json': infer Json }
    ? Json
    : string
  : undefined

/** Answer of an operation: the JSON, undefined for an answer without content, text for anything else. */
export type Output<Id extends OperationId> = {
  [Status in keyof operations[Id]['responses'] & SuccessStatus]: ContentOf<operations[Id]['responses'][Status]>
}[keyof operations[Id]['responses'] & SuccessStatus]

/** A list in pages. */
interface Page {
  data: readonly unknown[]
  pagination: { next_cursor: string | null }
}

type RowOf<List> = List extends { data: readonly (infer Row)[] } ? Row : never

/** The keys of a type that must be given. */
type RequiredKeys<Type> = { [Key in keyof Type]-?: object extends Pick<Type, Key> ? never : Key }[keyof Type]

type Arguments<Given> = [RequiredKeys<Given>] extends [never] ? [input?: Given] : [input: Given]

/** Calls an operation. Throws a `SignalboxError`. */
export type Call<Id extends OperationId> = ((...given: Arguments<Input<Id>>) => Promise<Output<Id>>) &
  (Output<Id> extends Page
    ? {
        /** Every row of the list from `query.cursor` on, page after page as they are read. */
        each(...given: Arguments<Input<Id>>): AsyncGenerator<RowOf<Output<Id>>, void, undefined>
      }
    : unknown)

type Areas = typeof OPERATIONS

/** The calls of the API, by area and by the name of the operation. */
export type Calls = {
  readonly [Area in keyof Areas]: { readonly [Id in keyof Areas[Area] & OperationId]: Call<Id> }
}
