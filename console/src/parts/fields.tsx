import {
  Input,
  Checkbox as MantineCheckbox,
  MultiSelect as MantineMultiSelect,
  NativeSelect as MantineNativeSelect,
  NumberInput as MantineNumberInput,
  PasswordInput as MantinePasswordInput,
  Select as MantineSelect,
  TagsInput as MantineTagsInput,
  Textarea as MantineTextarea,
  TextInput as MantineTextInput,
  type MultiSelectProps,
  type SelectProps,
} from '@mantine/core'
import type { ComponentProps, ComponentType, ReactNode } from 'react'
import { useFieldError } from './field-errors.tsx'

interface Errorable {
  error?: ReactNode
  onChange?: unknown
}

/** An input that shows what the API says of `field`, the member of the body that it sets, until it is edited. */
function withFieldError<Props extends Errorable>(Of: ComponentType<Props>) {
  return function FieldInput({ field, ...props }: Props & { field?: string }) {
    const { error, onEdit } = useFieldError(field)
    const { onChange } = props
    const shown = {
      ...props,
      ...(error !== undefined && { error, 'aria-invalid': true }),
      ...(typeof onChange === 'function' && {
        onChange: (...given: unknown[]) => {
          onEdit()
          return onChange(...given)
        },
      }),
    } as unknown as Props
    return <Of {...shown} />
  }
}

export const TextInput = withFieldError<ComponentProps<typeof MantineTextInput>>(MantineTextInput)
export const Textarea = withFieldError<ComponentProps<typeof MantineTextarea>>(MantineTextarea)
export const PasswordInput = withFieldError<ComponentProps<typeof MantinePasswordInput>>(MantinePasswordInput)
export const NumberInput = withFieldError<ComponentProps<typeof MantineNumberInput>>(MantineNumberInput)
export const NativeSelect = withFieldError<ComponentProps<typeof MantineNativeSelect>>(MantineNativeSelect)
export const Select = withFieldError<SelectProps<string>>(MantineSelect)
export const MultiSelect = withFieldError<MultiSelectProps<string>>(MantineMultiSelect)
export const TagsInput = withFieldError<ComponentProps<typeof MantineTagsInput>>(MantineTagsInput)
export const CheckboxGroup = withFieldError<ComponentProps<typeof MantineCheckbox.Group>>(MantineCheckbox.Group)

/** The error of a member that several inputs set together, below them. */
export function GroupError({ field }: { field: string }) {
  const { error } = useFieldError(field)
  if (error === undefined) return null
  return <Input.Error role="alert">{error}</Input.Error>
}
