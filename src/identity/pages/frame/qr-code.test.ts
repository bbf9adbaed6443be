import decodeQR from 'qr/decode.js'
import { expect, test } from 'vitest'
import { renderQrCode } from './qr-code.ts'

const PIXELS = 4

/** The modules of the image as an RGB picture, each some pixels wide. */
function paint(svg: string): { width: number; height: number; data: Uint8Array } {
  const size = Number(/viewBox="0 0 (\d+)/.exec(svg)?.[1])
  const width = size * PIXELS
  const data = new Uint8Array(width * width * 3).fill(255)
  for (const [, x, y] of svg.matchAll(/M(\d+) (\d+)h1v1h-1z/g))
    for (let row = 0; row < PIXELS; row += 1) {
      const from = ((Number(y) * PIXELS + row) * width + Number(x) * PIXELS) * 3
      data.fill(0, from, from + PIXELS * 3)
    }
  return { width, height: width, data }
}

test('a camera reads the text from the image', () => {
  const text = 'otpauth://totp/Signalbox:ada%40example.test?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Signalbox'
  expect(decodeQR(paint(renderQrCode(text, 'QR code').text))).toBe(text)
})

test('an image names itself, and its label is escaped', () => {
  expect(renderQrCode('x', 'a "code"').text).toContain('role="img" aria-label="a &quot;code&quot;"')
})
