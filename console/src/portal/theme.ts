import { type CSSVariablesResolver, createTheme, type MantineColorsTuple, mergeThemeOverrides } from '@mantine/core'
import { resolveVariables, theme } from '../frame/theme.ts'
import { portal } from './settings.ts'

const { colors } = portal

/** The shades of the brand: the button and its hover of each scheme are where Mantine looks for them. */
function buildShades({ light, dark }: NonNullable<typeof colors>): MantineColorsTuple {
  const pale = (share: number) => `color-mix(in srgb, ${light.accent} ${share}%, white)`
  return [
    pale(8),
    pale(16),
    pale(30),
    dark.link,
    dark.accent,
    dark.accentStrong,
    light.link,
    light.accent,
    light.accentStrong,
    light.link,
  ]
}

/** The look of the console in the colour of the brand. */
export const portalTheme = colors
  ? mergeThemeOverrides(
      theme,
      createTheme({ primaryShade: { light: 7, dark: 4 }, colors: { ink: buildShades(colors) } }),
    )
  : theme

/** Links have the shade of the brand that is read on both grounds. */
export const resolvePortalVariables: CSSVariablesResolver = (made) => {
  const { variables, light, dark } = resolveVariables(made)
  if (!colors) return { variables, light, dark }
  return {
    variables,
    light: { ...light, '--mantine-color-anchor': colors.light.link },
    // The grounds here are lighter than those for which the colour was made (WCAG 1.4.3).
    dark: { ...dark, '--mantine-color-anchor': `color-mix(in srgb, ${colors.dark.link} 70%, white)` },
  }
}

/** The scheme is that of the link; a framed page has no storage in which a choice could be kept. */
export const noStorage = {
  get: () => portal.theme,
  set: () => {},
  subscribe: () => {},
  unsubscribe: () => {},
  clear: () => {},
}
