import { Text, Title } from '@mantine/core'

/** Title of a card, and a sentence that says what it shows. */
export function CardHeading({ title, summary }: { title: string; summary: string }) {
  return (
    <div className="card-heading">
      <Title order={2} size="h5">
        {title}
      </Title>
      <Text size="sm" c="dimmed">
        {summary}
      </Text>
    </div>
  )
}

/** Text in a card without data. */
export function EmptyCard({ text }: { text: string }) {
  return (
    <div className="chart-empty">
      <Text size="sm" c="dimmed">
        {text}
      </Text>
    </div>
  )
}
