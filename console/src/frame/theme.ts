import { type CSSVariablesResolver, createTheme } from '@mantine/core'

/** The look: a quiet grey with one deep blue; text and badges keep a contrast of 4.5 to 1 in both schemes (WCAG 1.4.3). */
export const theme = createTheme({
  respectReducedMotion: true,
  primaryColor: 'ink',
  primaryShade: 7,
  autoContrast: true,
  luminanceThreshold: 0.36,
  defaultRadius: 'md',
  fontFamily: 'Inter, ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace',
  headings: { fontWeight: '650', sizes: { h1: { fontSize: '1.5rem', lineHeight: '2rem' } } },
  colors: {
    ink: ['#eef2ff', '#dfe5fb', '#bcc8f2', '#97a9ea', '#778ee3', '#627ddf', '#3f5bc9', '#3149ab', '#283c8c', '#1f2f6e'],
  },
  components: {
    Tooltip: { defaultProps: { withArrow: true } },
  },
})

/** Mantine's dimmed text is too light on its own grounds, and its links are too dark on a dark card. */
export const resolveVariables: CSSVariablesResolver = ({ colors }) => ({
  variables: {},
  light: { '--mantine-color-dimmed': colors.gray[7], '--mantine-color-error': colors.red[9] },
  dark: {
    '--mantine-color-dimmed': colors.dark[1],
    '--mantine-color-error': colors.red[4],
    '--mantine-color-anchor': colors.ink?.[3] ?? colors.blue[3],
  },
})
