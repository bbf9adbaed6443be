import './frame/start/start.ts'
import { DirectionProvider, MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { setNonce } from 'get-nonce'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { takeFirstReads } from './frame/first-reads.ts'
import { queries } from './frame/queries.ts'
import { buildConsoleRouter } from './frame/router.tsx'
import { settings } from './frame/settings.ts'
import { watchTyping } from './frame/signed-out.ts'
import { resolveVariables, theme } from './frame/theme.ts'
import { startLanguage } from './language/i18n.ts'
import './frame/styles.css'

const root = document.getElementById('console')
if (!root) throw new Error('the page was not served by Signalbox')
watchTyping(document)
// The style sheets that hold the page still behind a dialog.
setNonce(settings.nonce)
await Promise.all([startLanguage(settings.language), takeFirstReads()])
createRoot(root).render(
  <StrictMode>
    <DirectionProvider>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={resolveVariables}
        defaultColorScheme="auto"
        getStyleNonce={() => settings.nonce}
      >
        <QueryClientProvider client={queries}>
          <RouterProvider router={buildConsoleRouter()} />
        </QueryClientProvider>
      </MantineProvider>
    </DirectionProvider>
  </StrictMode>,
)
