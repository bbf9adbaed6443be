/** A colour: red, green and blue from 0 to 255. */
type Rgb = readonly [number, number, number]

/** The colours of one scheme that follow from that of the brand. */
export interface SchemeColors {
  /** Of buttons, boxes and the focus. */
  accent: string
  /** Of a button under the pointer. */
  accentStrong: string
  /** Of text on both. */
  onAccent: string
  link: string
}

/** Background colours of a scheme, as in style.css. */
const GROUNDS = {
  light: ['#f5f6f8', '#ffffff', '#f7f8fa'],
  dark: ['#0d0f14', '#161a22', '#1c212b'],
} as const

const WHITE = '#ffffff'
const BLACK = '#000000'

/** Minimum contrast of text, and of other visible parts (WCAG 2.2 success criteria 1.4.3 and 1.4.11). */
export const TEXT_CONTRAST = 4.5
export const SHAPE_CONTRAST = 3

function read(hex: string): Rgb {
  const value = Number.parseInt(hex.slice(1), 16)
  return [value >> 16, (value >> 8) & 255, value & 255]
}

const write = (rgb: Rgb) => `#${rgb.map((channel) => Math.round(channel).toString(16).padStart(2, '0')).join('')}`

/** The relative luminance of a colour, from 0 to 1 (WCAG 2.2). */
function findLuminance(hex: string): number {
  const [red, green, blue] = read(hex).map((item) => {
    const part = item / 255
    return part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  }) as unknown as Rgb
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** The contrast of two colours, from 1 to 21 (WCAG 2.2). Pure. */
export function findContrast(text: string, other: string): number {
  const [a, b] = [findLuminance(text), findLuminance(other)]
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
}

function mix(text: string, other: string, share: number): string {
  const [from, to] = [read(text), read(other)]
  return write(from.map((part, index) => part + ((to[index] ?? 0) - part) * share) as unknown as Rgb)
}

/** The colour itself, or the nearest one towards `end` that is seen on all of these. */
function moveUntilSeen(color: string, end: string, { on, least }: { on: readonly string[]; least: number }): string {
  for (let share = 0; share < 1; share += 0.02) {
    const moved = mix(color, end, share)
    if (on.every((fixture) => findContrast(moved, fixture) >= least)) return moved
  }
  return end
}

/** The colours of both schemes for a brand's `#rrggbb`, darkened or lightened until they are seen there. Pure. */
export function deriveColors(color: string): Record<'light' | 'dark', SchemeColors> {
  const derive = (scheme: 'light' | 'dark'): SchemeColors => {
    const end = scheme === 'light' ? BLACK : WHITE
    const accent = moveUntilSeen(color, end, { on: GROUNDS[scheme], least: SHAPE_CONTRAST })
    const onAccent = findContrast(accent, WHITE) >= TEXT_CONTRAST ? WHITE : BLACK
    // Away from the text on it, so that the text is read better under the pointer.
    const accentStrong = mix(accent, onAccent === WHITE ? BLACK : WHITE, 0.12)
    const link = moveUntilSeen(color, end, { on: GROUNDS[scheme], least: TEXT_CONTRAST })
    return { accent, accentStrong, onAccent, link }
  }
  return { light: derive('light'), dark: derive('dark') }
}

const renderScheme = ({ accent, accentStrong, onAccent, link }: SchemeColors) =>
  `:root{--accent:${accent};--accent-strong:${accentStrong};--on-accent:${onAccent};--link:${link}}`

/** The rules that give the style sheet the colours of a brand. Pure. */
export function buildColorRules(color: string): string {
  const { light, dark } = deriveColors(color)
  return `${renderScheme(light)}\n@media (prefers-color-scheme: dark){${renderScheme(dark)}}\n`
}
