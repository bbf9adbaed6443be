import { Center, Loader } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { Page } from '../parts/page.tsx'
import { TextLink } from '../parts/text-link.tsx'
import { isSignedOut } from './api.ts'
import { sessionQuery } from './resume-session.ts'
import { ServiceFault } from './service-fault.tsx'
import { AccessProvider } from './session.tsx'
import { Shell } from './shell.tsx'

/** The console of the user who is signed in. */
export function Root() {
  const session = useQuery(sessionQuery)
  if (session.data)
    return (
      <AccessProvider session={session.data.data}>
        <Shell />
      </AccessProvider>
    )
  if (session.isError && !isSignedOut(session.error))
    return <ServiceFault error={session.error} onRetry={session.refetch} />
  return (
    <Center h="100vh">
      <Loader aria-label="Signalbox" />
    </Center>
  )
}

/** Screen of an unknown path. */
export function NotFound() {
  const { t } = useTranslation()
  return (
    <Page title={t('not-found.title')} lead={t('not-found.text')}>
      <TextLink to="/" size="sm">
        {t('not-found.home')}
      </TextLink>
    </Page>
  )
}
