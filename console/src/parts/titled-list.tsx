import { Stack, Text, Title } from '@mantine/core'
import { List, type ListProps } from './list.tsx'
import type { Row } from './row-table.tsx'

/** A list without filters in a page, below its heading and one sentence about it. */
export function TitledList<One extends Row>(
  props: Omit<ListProps<One>, 'caption' | 'isFiltered' | 'empty'> & { title: string; lead: string; none: string },
) {
  const { title, lead, none, ...list } = props
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {title}
      </Title>
      <Text size="sm" c="dimmed">
        {lead}
      </Text>
      <List {...list} caption={title} isFiltered={false} empty={<Text size="sm">{none}</Text>} />
    </Stack>
  )
}
