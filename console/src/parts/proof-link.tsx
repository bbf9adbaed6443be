import { Button, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { resumeSession } from '../frame/resume-session.ts'
import { hasTyped } from '../frame/signed-out.ts'

/** Where another tab ends: a page that says who is signed in. */
const END = '/auth/'

/**
 * Leads to a page that proves who the user is, and comes back. Where something is typed here, which that would lose, it opens
 * another tab, and the page goes on with the proven session when the user is back.
 */
export function ProofLink({ to, children }: { to: (next?: string) => string; children: ReactNode }) {
  const { t } = useTranslation()
  const queries = useQueryClient()
  if (!hasTyped())
    return (
      <Button size="xs" component="a" href={to()}>
        {children}
      </Button>
    )
  const goOn = () => window.addEventListener('focus', () => void resumeSession(queries), { once: true })
  return (
    <>
      <Button size="xs" component="a" href={to(END)} target="_blank" onClick={goOn}>
        {children}
      </Button>
      <Text size="xs" c="dimmed">
        {t('problem.beside')}
      </Text>
    </>
  )
}
