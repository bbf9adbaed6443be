import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { loadBrand, STYLE } from './brand.ts'
import { deriveColors, findContrast, SHAPE_CONTRAST, TEXT_CONTRAST } from './brand-color.ts'

const GROUNDS = { light: ['#f5f6f8', '#ffffff'], dark: ['#0d0f14', '#161a22'] } as const
const anyColor = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`)

describe('the colours of a brand', () => {
  test('are seen and read in both schemes, whatever the colour is (WCAG 2.2 AA)', () => {
    fc.assert(
      fc.property(anyColor, (color) => {
        const derived = deriveColors(color)
        for (const scheme of ['light', 'dark'] as const) {
          const { accent, accentStrong, onAccent, link } = derived[scheme]
          for (const fixture of GROUNDS[scheme]) {
            expect(findContrast(accent, fixture)).toBeGreaterThanOrEqual(SHAPE_CONTRAST)
            expect(findContrast(link, fixture)).toBeGreaterThanOrEqual(TEXT_CONTRAST)
          }
          for (const button of [accent, accentStrong])
            expect(findContrast(button, onAccent)).toBeGreaterThanOrEqual(TEXT_CONTRAST)
        }
      }),
    )
  })

  test('stay as they are where they can be seen', () => {
    expect(deriveColors('#0b57d0').light).toMatchObject({ accent: '#0b57d0', link: '#0b57d0', onAccent: '#ffffff' })
    expect(deriveColors('#ffd400').dark).toMatchObject({ accent: '#ffd400', link: '#ffd400', onAccent: '#000000' })
    expect(deriveColors('#ffd400').light.accent).not.toBe('#ffd400')
  })

  test('contrast as WCAG computes it', () => {
    expect(findContrast('#000000', '#ffffff')).toBeCloseTo(21, 5)
    expect(findContrast('#767676', '#ffffff')).toBeCloseTo(4.54, 2)
  })

  test('are behind the style sheet, whose address changes with them', () => {
    const { style } = loadBrand({ name: 'Acme', logoPath: undefined, color: '#0b57d0' })
    expect(style.body.toString()).toContain('--accent:#0b57d0')
    expect([style.path, style.hash === STYLE.hash]).toEqual([STYLE.path, false])
    expect(loadBrand({ name: 'Acme', logoPath: undefined, color: undefined }).style).toBe(STYLE)
  })
})
