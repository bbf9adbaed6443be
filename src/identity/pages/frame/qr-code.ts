import { encodeQR } from 'qr'
import { type Html, html } from '../../../base/html.ts'

/** Light modules around the code (ISO/IEC 18004 section 6.3.8). */
const QUIET_ZONE = 4

/** A text as a QR code: an inline image that names itself. */
export function renderQrCode(text: string, label: string): Html {
  const modules = encodeQR(text, 'raw', { border: QUIET_ZONE, ecc: 'medium' })
  const size = modules.length
  const path = modules.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : []))).join('')
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="${label}" shape-rendering="crispEdges"><rect width="${size}" height="${size}" fill="#fff"/><path d="${path}" fill="#000"/></svg>`
}
