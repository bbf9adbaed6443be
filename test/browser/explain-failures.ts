import { afterEach } from 'vitest'
import { explainFailure } from './shown-pages.ts'

// A log of CI has nothing else to see the pages of a failed test by.
afterEach(({ task }) => explainFailure(task))
