import { Button, Code, CopyButton, Popover, Stack, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { type ShownCall, toCurl, toProgram } from './shown-call.ts'

/** Shows how a program does what the screen does. */
export function ApiCall(call: ShownCall) {
  const { t } = useTranslation()
  const texts = [toCurl(call, location.origin), toProgram(call)]
  return (
    <Popover width={420} position="bottom-end" withArrow trapFocus>
      <Popover.Target>
        <Button variant="subtle" color="gray" size="compact-sm">
          {t('api-call.title')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown maw="calc(100vw - 24px)">
        <Stack gap="xs">
          {texts.map((text, index) => (
            <div key={text}>
              <Text size="xs" c="dimmed">
                {index === 0 ? 'curl' : '@signalbox/client'}
              </Text>
              <Code block className="wrap">
                {text}
              </Code>
              <CopyButton value={text}>
                {({ copied, copy }) => (
                  <Button size="compact-xs" variant="default" mt={4} onClick={copy}>
                    {copied ? t('copy.done') : t('copy.do')}
                  </Button>
                )}
              </CopyButton>
            </div>
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
