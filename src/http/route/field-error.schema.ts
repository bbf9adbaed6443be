import type { FieldParams } from '../problem/field-error.ts'
import { Type } from '../shape/schema-type.ts'

/** The members of `params`. One that `FieldParams` or this lacks is a type error. */
const PARAMS = {
  limit: Type.Optional(Type.Number({ description: 'The only bound of the rule.' })),
  least: Type.Optional(Type.Integer({ description: 'The lower bound of the rule.' })),
  most: Type.Optional(Type.Integer({ description: 'The upper bound of the rule.' })),
  bytes: Type.Optional(Type.Integer({ description: 'The greatest size.' })),
  values: Type.Optional(Type.Array(Type.String(), { description: 'What is taken: the first 20.' })),
  types: Type.Optional(Type.Array(Type.String(), { description: 'The types that are taken.' })),
  format: Type.Optional(Type.String({ description: 'The format of the text.' })),
  pattern: Type.Optional(Type.String({ description: 'The pattern that the text must match.' })),
  other: Type.Optional(Type.String({ description: 'The member that the rule compares with.' })),
  setting: Type.Optional(Type.String({ description: 'The setting that allows the value.' })),
  instant: Type.Optional(Type.String({ description: 'The latest instant.' })),
} satisfies Record<keyof FieldParams, unknown>

/** One entry of `errors` (docs/contract/api.md#errors). A `title` is a name in the OpenAPI document, as by `named`. */
export const FieldErrorSchema = Type.Object(
  {
    path: Type.String({ description: 'The member in dotted form, or the name of a query parameter.' }),
    // No enum: a generated client must read the refusals of a newer service, which may have another code.
    code: Type.String({ description: 'Stable; programs decide on it. The page of `validation_failed` lists all.' }),
    message: Type.String({ description: 'The rule and the remedy, in English.' }),
    params: Type.Optional(
      Type.Object(PARAMS, {
        title: 'FieldErrorParams',
        description: 'Numbers and words of the rule, for a text in another language.',
      }),
    ),
  },
  { title: 'FieldError' },
)
