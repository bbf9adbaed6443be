import '../frame/styles.css'
import './portal.css'
import { DirectionProvider, MantineProvider } from '@mantine/core'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { setNonce } from 'get-nonce'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { settings } from '../frame/settings.ts'
import { guardUnload } from '../frame/unsaved.ts'
import { listenForHost } from './host.ts'
import { startPortalLanguage } from './language.ts'
import { PortalPage } from './portal-page.tsx'
import { openFirst, reopen, takeLinkToken } from './session.ts'
import { noStorage, portalTheme, resolvePortalVariables } from './theme.ts'

// First, so that the token is out of the address before anything else runs.
const token = takeLinkToken()
const root = document.getElementById('console')
if (!root) throw new Error('the page was not served by Signalbox')
if (window.parent !== window) document.documentElement.dataset.framed = ''
listenForHost(() => void reopen())
guardUnload(window)
setNonce(settings.nonce)
const queries = new QueryClient({ defaultOptions: { queries: { staleTime: 2_000, retry: false } } })
const opening = openFirst(token)
await startPortalLanguage(settings.language)
createRoot(root).render(
  <StrictMode>
    <DirectionProvider>
      <MantineProvider
        theme={portalTheme}
        cssVariablesResolver={resolvePortalVariables}
        defaultColorScheme="auto"
        colorSchemeManager={noStorage}
        getStyleNonce={() => settings.nonce}
      >
        <QueryClientProvider client={queries}>
          <PortalPage />
        </QueryClientProvider>
      </MantineProvider>
    </DirectionProvider>
  </StrictMode>,
)
await opening
