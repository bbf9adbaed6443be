import { Button, Group, Stack, Text } from '@mantine/core'
import { focusManager } from '@tanstack/react-query'
import { useCallback, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Dialog } from '../parts/dialog.tsx'
import { queries } from './queries.ts'
import { resumeSession } from './resume-session.ts'
import { askToSignIn } from './signed-out.ts'

/** Where the other tab ends: a page that says who is signed in. */
const SIGN_IN = `/auth/sign-in?${new URLSearchParams({ next: '/auth/' })}`

/**
 * Asks to sign in in another tab, beside the page whose entries stay. It goes by itself when the user comes back signed in;
 * for another user the page is loaded anew.
 */
export function SignedOutDialog({ isOpen }: { isOpen: boolean }) {
  const { t } = useTranslation()
  const [isStillOut, setIsStillOut] = useState(false)
  const goOn = useCallback(async () => {
    const isResumed = await resumeSession(queries)
    setIsStillOut(!isResumed)
    if (isResumed) askToSignIn(false)
  }, [])
  useEffect(() => {
    if (!isOpen) return
    // Nothing is read again and again for nobody.
    focusManager.setFocused(false)
    const check = () => void (document.visibilityState === 'visible' && goOn())
    check()
    window.addEventListener('focus', check)
    document.addEventListener('visibilitychange', check)
    return () => {
      window.removeEventListener('focus', check)
      document.removeEventListener('visibilitychange', check)
      focusManager.setFocused(undefined)
      void queries.invalidateQueries()
    }
  }, [isOpen, goOn])
  return (
    <Dialog title={t('signed-out.title')} isOpen={isOpen} onClose={() => askToSignIn(false)} isAbove>
      <Stack>
        <Text size="sm">{t('signed-out.text')}</Text>
        <Group justify="flex-end">
          {isStillOut && (
            <Button variant="default" onClick={() => void goOn()}>
              {t('signed-out.check')}
            </Button>
          )}
          <Button component="a" href={SIGN_IN} target="_blank">
            {t('signed-out.sign-in')}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  )
}
