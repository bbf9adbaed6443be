import { Button, Code, CopyButton, Group, Stack } from '@mantine/core'
import { useTranslation } from 'react-i18next'

/** Program text with a button that copies it. */
export function Snippet({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation()
  return (
    <Stack gap="xs">
      <Group justify="flex-end">
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy}>
              {copied ? t('copy.done') : t('copy.do')}
            </Button>
          )}
        </CopyButton>
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard */}
      <section className="snippet" tabIndex={0} aria-label={label}>
        <Code block>{text}</Code>
      </section>
    </Stack>
  )
}
